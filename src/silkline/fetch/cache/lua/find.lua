-- ARGV: url, owner, now
local member = ARGV[1] .. ':' .. ARGV[2]
redis.call('ZADD', p .. 'used', 'XX', ARGV[3], member)
return redis.call('HGETALL', p .. 'r:' .. member)
