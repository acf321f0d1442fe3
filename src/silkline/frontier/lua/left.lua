-- What has left for other partitions, up to call.number, has arrived there.
local gone = 0
while true do
    local head = redis.call('LINDEX', LEAVING, 0)
    if not head or tonumber(string.match(head, '^%d+')) > call.number then
        break
    end
    redis.call('LPOP', LEAVING)
    gone = gone + 1
end
if gone > 0 then
    redis.call('HINCRBY', META, 'gone', gone)
end
return {}
