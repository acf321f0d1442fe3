-- needs: hosts, requests
-- Take in what has left another partition for a host of this one. call: from, the other one's prefix; entries
-- {{number, deliveries, priority, host}, ...}, in the order in which they left; ARGV from 2 on: their payloads.
-- Numbers count up, so what has been taken in before is known, whoever brings it.
local field = 'from ' .. call.from
local known = redis.call('HMGET', META, field, 'last_id')
local last, id = tonumber(known[1] or 0), tonumber(known[2] or 0)
for i, entry in ipairs(call.entries) do
    local number, deliveries, priority, key = unpack(entry)
    if number > last then
        last, id = number, id + 1
        put_back(host(key), { id = int(id), priority = priority, deliveries = deliveries, payload = ARGV[i + 1] })
        redis.call('HSET', AWAY, string.sub(ARGV[i + 1], 1, 8), key)
    end
end
redis.call('HSET', META, field, int(last), 'last_id', int(id))
settle_touched()
if became_due then
    tell('work')
end
return {}
