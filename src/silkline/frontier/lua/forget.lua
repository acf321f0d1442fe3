-- Forget what workers that are gone were answered. call: living (workers), forget_calls: for how many seconds an
-- answer is kept in any case, since a worker that was cut off still asks for the one that it missed.
local living = {}
for _, worker in ipairs(call.living) do
    living[worker] = true
end
local answers = redis.call('HGETALL', OPS)
for i = 1, #answers, 2 do
    local at = tonumber(string.sub(answers[i + 1], OP + 1, STAMP))
    if (not at or at < now - call.forget_calls) and not living[string.match(answers[i], '^(.*):%a+$') or ''] then
        redis.call('HDEL', OPS, answers[i])
    end
end
return {}
