-- Append entries whose identity is not known with this content yet.
-- KEYS: the stream; two hashes of identities, by age; which of them is the younger one.
-- ARGV: entries of the stream at most (0: no limit); identities in a hash at most; then five for each item:
--   identity, digest, fingerprint, index ('' for none), item.
-- A hash: identity -> digest and, after a space, the id of the entry; and of a page, by its 16 digits, the
-- highest index. Reply: how many were appended.
local stream, most, room = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local young = redis.call('GET', KEYS[4]) == '1' and 3 or 2
local added = 0
for i = 3, #ARGV, 5 do
    local identity, digest = ARGV[i], ARGV[i + 1]
    local known = redis.call('HGET', KEYS[young], identity) or redis.call('HGET', KEYS[5 - young], identity)
    if not known or string.sub(known, 1, #digest) ~= digest then
        local words = { 'XADD', stream }
        if most > 0 then
            words[3], words[4], words[5] = 'MAXLEN', '~', most
        end
        local n = #words
        words[n + 1] = '*'
        words[n + 2], words[n + 3] = 'key', identity
        words[n + 4], words[n + 5] = 'fingerprint', ARGV[i + 2]
        words[n + 6], words[n + 7] = 'index', ARGV[i + 3]
        words[n + 8], words[n + 9] = 'item', ARGV[i + 4]
        local id = redis.call(unpack(words))
        redis.call('HSET', KEYS[young], identity, digest .. ' ' .. id)
        added = added + 1
        if ARGV[i + 3] ~= '' then
            local page = string.sub(identity, 1, 16)
            if tonumber(ARGV[i + 3]) > tonumber(redis.call('HGET', KEYS[young], page) or -1) then
                redis.call('HSET', KEYS[young], page, ARGV[i + 3])
            end
        end
        if redis.call('HLEN', KEYS[young]) >= room then
            young = 5 - young
            redis.call('DEL', KEYS[young])
            redis.call('SET', KEYS[4], young == 3 and '1' or '0')
        end
    end
end
return added
