-- A worker lives. call: worker, beat (JSON without its end); forget: seconds after which others without a
-- heartbeat are forgotten, nil for not looking; forget_calls: the same for what was answered to whom: much
-- longer, since a worker that was cut off still asks for the answer that it missed.
-- Reply: {inbox, name, value, ... of the live settings}
redis.call('HSET', PREFIX .. 'workers', call.worker, call.beat .. ',"seen":' .. exact(now) .. '}')
if call.forget then
    local workers = redis.call('HGETALL', PREFIX .. 'workers')
    for i = 1, #workers, 2 do
        local seen = tonumber(string.match(workers[i + 1], '"seen":([%d.e+]+)}$'))
        if not seen or seen < now - call.forget then
            redis.call('HDEL', PREFIX .. 'workers', workers[i])
        end
    end
    local answers = redis.call('HGETALL', OPS)
    for i = 1, #answers, 2 do
        local at = tonumber(string.sub(answers[i + 1], OP + 1, STAMP))
        local worker = string.match(answers[i], '^(.*):%a+$')
        if (not at or at < now - call.forget_calls)
            and redis.call('HEXISTS', PREFIX .. 'workers', worker or '') == 0 then
            redis.call('HDEL', OPS, answers[i])
        end
    end
end
local config = redis.call('HGETALL', PREFIX .. 'config')
table.insert(config, 1, redis.call('LLEN', INBOX))
return config
