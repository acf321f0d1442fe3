-- needs: hosts, requests, seen
-- Enqueue what was drained, and take it out of the inbox. call: lock, count, bytes, runs, bad (how many).
-- ARGV from 2 on: the first and the last entry as drain gave them, the bad ones as dead letters without
-- their end, then the requests: see enqueue(). Reply: {added} or {-1}: another worker was faster.
if redis.call('GET', PREFIX .. 'draining') ~= call.lock then
    return answered({ -1 })
end

-- Another program may have put something in front, or taken something out.
local function is_at(place, entry)
    local found = redis.call('LINDEX', INBOX, place)
    return found and string.sub(found, 1, call.bytes + 1) == entry
end

redis.call('LLEN', DEAD)
redis.call('DEL', PREFIX .. 'draining')
if not (is_at(0, ARGV[2]) and is_at(call.count - 1, ARGV[3])) then
    return answered({ -1 })
end
redis.call('LTRIM', INBOX, call.count, -1)
for i = 4, 3 + call.bad do
    count_buried(1)
    local id = redis.call('HINCRBY', META, 'last_id', 1)
    redis.call('RPUSH', DEAD, ARGV[i] .. ',"at":' .. exact(now) .. ',"id":' .. id .. '}')
    count('dead', 1)
end
local added = enqueue(call.runs, 4 + call.bad)
settle_touched()
if became_due or redis.call('LLEN', INBOX) > 0 then
    tell('work')
elseif redis.call('EXISTS', LEVELS, EXPIRY, DELAYED) == 0 then
    tell('finished')
end
return answered({ added })
