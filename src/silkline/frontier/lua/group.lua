-- Keep the politeness key of each of these hosts where none is kept. call: pairs, host and key, one after
-- the other; the key '' proposes nothing. Reply: host and key of those that have one now.
local name, reply = PREFIX .. 'groups', {}
for i = 1, #call.pairs, 2 do
    local host, key = call.pairs[i], call.pairs[i + 1]
    if key ~= '' then
        redis.call('HSETNX', name, host, key)
    end
    local kept = redis.call('HGET', name, host)
    if kept then
        reply[#reply + 1] = host
        reply[#reply + 1] = kept
    end
end
return reply
