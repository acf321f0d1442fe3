-- needs: hosts, requests, seen
-- Where is this request, and why? call: host; fingerprint (decimal), hex; limit: entries looked at, at most;
-- led: redirects have led it to that host.
-- ARGV[2]: the fingerprint's 8 bytes. Reply: {place, ...}, or {'away', host} where redirects have led it to
-- another host than call.host.
local wanted = ARGV[2]
local limit = call.limit
local h = { key = call.host }
local packed = redis.call('HGET', HOSTS, call.host)
local blocked = packed and cmsgpack.unpack(packed)[4] or 0

local function each(command, key, step, look)
    local from = 0
    repeat
        local part = redis.call(command, key, from, from + step - 1)
        for i, entry in ipairs(part) do
            local found = look(entry, from + i - 1)
            if found then
                return found
            end
        end
        from = from + #part
        limit = limit - #part
    until #part < step or limit <= 0
end

local away = redis.call('HGET', AWAY, wanted)
if away and away ~= call.host then
    local leaving = each('LRANGE', LEAVING, CHUNK, function(entry)
        local at = string.match(entry, '^%d+ %d+ %-?%d+ %S+ ()')
        if string.sub(entry, at, at + 7) == wanted then
            return { 'leaving', away, string.sub(entry, at) }
        end
    end)
    return leaving or { 'away', away }
end
if call.dedup ~= 'none' and not call.led and not was_seen(call.fingerprint) then
    return { 'never seen', redis.call('HGET', PREFIX .. 'taken', call.host) or 0 }
end

local ahead = 0
for _, level in ipairs(redis.call('ZREVRANGE', LEVELS, 0, -1)) do
    local name = level .. ':' .. call.host
    local found = each('ZRANGE', PREFIX .. 'back:' .. name, CHUNK, function(entry, place)
        local _, at = string.find(entry, ' ', 17, true)
        if string.sub(entry, at + 1, at + 8) == wanted then
            return { 'waiting', ahead + place, level, exact(blocked), exact(now), string.sub(entry, at + 1) }
        end
    end)
    if found then
        return found
    end
    ahead = ahead + redis.call('ZCARD', PREFIX .. 'back:' .. name)
    found = each('LRANGE', PREFIX .. 'wait:' .. name, CHUNK, function(entry, place)
        local _, at = string.find(entry, ' ', 1, true)
        if string.sub(entry, at + 1, at + 8) == wanted then
            return { 'waiting', ahead + place, level, exact(blocked), exact(now), string.sub(entry, at + 1) }
        end
    end)
    if found then
        return found
    end
    ahead = ahead + redis.call('LLEN', PREFIX .. 'wait:' .. name)
end

local held = redis.call('HGETALL', PREFIX .. 'held:' .. call.host)
for i = 1, #held, 2 do
    local request = read_held(held[i + 1])
    if string.sub(request.payload, 1, 8) == wanted then
        return { 'leased', request.worker, redis.call('ZSCORE', EXPIRY, held[i] .. ' ' .. call.host),
            request.deliveries, request.payload }
    end
end

local found = each('ZRANGE', DELAYED, CHUNK, function(entry)
    local request = read_delayed(entry)
    if string.sub(request.payload, 1, 8) == wanted then
        return { 'delayed', redis.call('ZSCORE', DELAYED, entry), request.retries, request.cause,
            request.payload }
    end
end)
if found then
    return found
end

found = each('LRANGE', DEAD, CHUNK, function(entry)
    if string.find(entry, '"fingerprint":"' .. call.hex .. '"', 1, true) then
        return { 'dead', entry }
    end
end)
if found then
    return found
elseif limit <= 0 then
    return { 'unknown' }
end
if call.dedup == 'none' and not away then
    return { 'never seen', redis.call('HGET', PREFIX .. 'taken', call.host) or 0 }
end
return { redis.call('SISMEMBER', PREFIX .. 'aliases', call.fingerprint) == 1 and 'alias' or 'done' }
