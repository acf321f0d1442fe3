-- A worker lives. call: worker, beat (JSON without its end); forget: seconds after which others without a
-- heartbeat are forgotten, nil for not looking. Reply: {inbox, name, value, ... of the live settings}
redis.call('HSET', PREFIX .. 'workers', call.worker, call.beat .. ',"seen":' .. exact(now) .. '}')
if call.forget then
    local workers = redis.call('HGETALL', PREFIX .. 'workers')
    for i = 1, #workers, 2 do
        local seen = tonumber(string.match(workers[i + 1], '"seen":([%d.e+]+)}$'))
        if not seen or seen < now - call.forget then
            redis.call('HDEL', PREFIX .. 'workers', workers[i])
        end
    end
end
local config = redis.call('HGETALL', PREFIX .. 'config')
table.insert(config, 1, redis.call('LLEN', INBOX))
return config
