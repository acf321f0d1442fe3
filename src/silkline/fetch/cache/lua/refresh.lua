-- ARGV: url, owner, variant, id, moment + id + metadata, now
local member = ARGV[1] .. ':' .. ARGV[2]
local key = p .. 'r:' .. member
if is_written_as(key, ARGV[3], ARGV[4]) then
  local before = bytes_of(key, ARGV[3])
  redis.call('HSET', key, 'm' .. ARGV[3], ARGV[5])
  resize(member, bytes_of(key, ARGV[3]) - before)
  redis.call('ZADD', p .. 'used', ARGV[6], member)
end
return 0
