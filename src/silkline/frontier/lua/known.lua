-- needs: hosts, seen
-- Which fingerprints are seen? call: fingerprints (decimal); mark: they are from now on. Reply: {0 or 1, ...}
local known = {}
for i, fingerprint in ipairs(call.fingerprints) do
    known[i] = was_seen(fingerprint) and 1 or 0
    if call.mark and known[i] == 0 then
        first_time(fingerprint)
        redis.call('SADD', PREFIX .. 'aliases', fingerprint)
    end
end
if call.mark then
    save_seen()
end
return known
