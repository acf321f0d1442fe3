-- call: name. Reply: {} or {value, seconds left}
local kept = redis.call('GET', PREFIX .. 'kept:' .. call.name)
if not kept then
    return {}
end
local expires, at = string.match(kept, '^(%S+) ()')
local left = tonumber(expires) - now
return left > 0 and { string.sub(kept, at), exact(left) } or {}
