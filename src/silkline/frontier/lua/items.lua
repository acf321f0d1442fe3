-- needs: hosts, requests
-- Take dead items out; with call.again their pages are waiting, in their old place, past the dedup.
-- `dead_items` is a sorted set by time. A member is a page that is done but for some items: the id that its
-- request had, in 16 digits, and JSON.
-- call.pages {{host, priority, id}, ...}. ARGV from 2 on: for each the member, and either the request's payload,
-- or what is left of the member ('' for nothing).
-- Reply: for each 1, or 0 where the member was not there.
local reply, moved = {}, 0
for i, page in ipairs(call.pages) do
    local key, priority, id = unpack(page)
    local old, new = ARGV[2 * i], ARGV[2 * i + 1]
    local at = redis.call('ZSCORE', DEAD_ITEMS, old)
    reply[i] = at and 1 or 0
    if at then
        redis.call('ZREM', DEAD_ITEMS, old)
        moved = moved + 1
        if call.again then
            put_back(host(key), { id = id, priority = priority, deliveries = 0, payload = new })
        elseif new ~= '' then
            redis.call('ZADD', DEAD_ITEMS, at, new)
        end
    end
end
if call.again and moved > 0 then
    redis.call('HINCRBY', META, 'done', -moved)
end
settle_touched()
if became_due then
    tell('work')
end
return answered(reply)
