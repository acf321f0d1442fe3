-- Keep a small value for a while. call: name, seconds. ARGV[2]: the value.
redis.call('SET', PREFIX .. 'kept:' .. call.name, exact(now + call.seconds) .. ' ' .. ARGV[2],
    'PX', max(1, math.ceil(call.seconds * 1000)))
return {}
