-- needs: hosts, requests, seen
-- Enqueue what was drained, and take it out of the inbox. call: lock, count, bytes, digest (of the entries as
-- drain gave them), runs, bad (how many). ARGV from 2 on: the bad ones as dead letters without their end, then
-- the requests: see enqueue(). Reply: {added} or {-1}: another worker was faster.
if redis.call('GET', PREFIX .. 'draining') ~= call.lock then
    return answered({ -1 })
end

-- Another program may have put something in front or in between, or taken something out: then what stands
-- there now is not what was drained, and must not go.
local entries = redis.call('LRANGE', INBOX, 0, call.count - 1)
for i, entry in ipairs(entries) do
    local shown = string.sub(entry, 1, call.bytes + 1)
    entries[i] = int(#shown) .. ':' .. shown
end

redis.call('LLEN', DEAD)
redis.call('DEL', PREFIX .. 'draining')
if redis.sha1hex(table.concat(entries)) ~= call.digest then
    return answered({ -1 })
end
redis.call('LTRIM', INBOX, call.count, -1)
for i = 2, 1 + call.bad do
    count_buried(1)
    local id = redis.call('HINCRBY', META, 'last_id', 1)
    redis.call('RPUSH', DEAD, ARGV[i] .. ',"at":' .. exact(now) .. ',"id":' .. id .. '}')
    count('dead', 1)
end
local added = enqueue(call.runs, 2 + call.bad)
settle_touched()
if became_due or redis.call('LLEN', INBOX) > 0 then
    tell('work')
elseif redis.call('EXISTS', LEVELS, EXPIRY, DELAYED) == 0 then
    tell('finished')
end
return answered({ added })
