-- Look at the first entries of the inbox, for the one worker that drains it just now. call: worker, count,
-- bytes (of one entry, at most), total (bytes of all). Nothing is taken out: `drained` does that in the same
-- step in which the requests are enqueued, so that an entry is never in no place.
-- Reply: {} if another worker is at it; {lock, entry, ...}; an entry over the limit is cut just behind it.
local LOCK = PREFIX .. 'draining'
local holder = redis.call('GET', LOCK)
if holder and string.match(holder, '^(%S+)') ~= call.worker then
    return {}
end
local lock = call.worker .. ' ' .. exact(now) .. ' ' .. call.number
redis.call('SET', LOCK, lock, 'EX', 10)
local reply, size = { lock }, 0
for i = 0, min(call.count, redis.call('LLEN', INBOX)) - 1 do
    local entry = redis.call('LINDEX', INBOX, i)
    if #entry > call.bytes then
        entry = string.sub(entry, 1, call.bytes + 1)
    end
    reply[#reply + 1] = entry
    size = size + #entry
    if size > call.total then
        break
    end
end
return reply
