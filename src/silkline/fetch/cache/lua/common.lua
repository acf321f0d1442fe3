-- Keys behind the prefix KEYS[1], which ends with "cache:" (all of them in one slot of a cluster):
--   r:<url>:<owner>  hash   m<variant> -> moment of writing (8 bytes), id (8 bytes), metadata; b<variant> -> body
--   o:<url>          set    owners that have responses of this URL
--   used             zset   <url>:<owner> by the time of its last use
--   sizes            hash   <url>:<owner> -> bytes
--   total            bytes of all
local p = KEYS[1]

local function resize(member, change)
  redis.call('HINCRBY', p .. 'sizes', member, change)
  redis.call('INCRBY', p .. 'total', change)
end

local function drop(member)
  local size = tonumber(redis.call('HGET', p .. 'sizes', member) or '0')
  redis.call('UNLINK', p .. 'r:' .. member)
  redis.call('ZREM', p .. 'used', member)
  redis.call('HDEL', p .. 'sizes', member)
  redis.call('DECRBY', p .. 'total', size)
  redis.call('SREM', p .. 'o:' .. string.sub(member, 1, 32), string.sub(member, 34))
end

local function bytes_of(key, variant)
  return redis.call('HSTRLEN', key, 'm' .. variant) + redis.call('HSTRLEN', key, 'b' .. variant)
end

local function remove(key, member, variant)
  resize(member, -bytes_of(key, variant))
  redis.call('HDEL', key, 'm' .. variant, 'b' .. variant)
end

local function is_written_as(key, variant, id)
  local meta = redis.call('HGET', key, 'm' .. variant)
  return meta and string.sub(meta, 9, 16) == id
end
