-- ARGV: url, owner, variant, moment + id + metadata, body, now, limit, size after making room, variants
local url, owner, variant = ARGV[1], ARGV[2], ARGV[3]
local limit, variants = tonumber(ARGV[7]), tonumber(ARGV[9])
local member = url .. ':' .. owner
local key = p .. 'r:' .. member
local before = bytes_of(key, variant)
redis.call('HSET', key, 'm' .. variant, ARGV[4], 'b' .. variant, ARGV[5])
redis.call('SADD', p .. 'o:' .. url, owner)
redis.call('ZADD', p .. 'used', ARGV[6], member)
resize(member, #ARGV[4] + #ARGV[5] - before)
if redis.call('HLEN', key) > 2 * variants then
  local oldest, moment
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if string.sub(field, 1, 1) == 'm' then
      local written = string.sub(redis.call('HGET', key, field), 1, 8)
      if not moment or written < moment then
        oldest, moment = string.sub(field, 2), written
      end
    end
  end
  remove(key, member, oldest)
end
if tonumber(redis.call('GET', p .. 'total')) > limit then
  local room = tonumber(ARGV[8])
  while tonumber(redis.call('GET', p .. 'total')) > room do
    local least = redis.call('ZRANGE', p .. 'used', 0, 0)[1]
    if not least then
      break
    end
    drop(least)
  end
end
return 0
