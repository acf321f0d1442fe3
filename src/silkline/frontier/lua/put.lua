-- Change a small hash of the job. call: name, set {field, value, ...}, unset {field, ...}. Reply: all of it
local key = PREFIX .. call.name
if #call.unset > 0 then
    many('HDEL', key, call.unset)
end
if #call.set > 0 then
    many('HSET', key, call.set)
end
return redis.call('HGETALL', key)
