-- Requests on their way between places. A payload is 8 bytes of fingerprint and the request's JSON.
--
-- In a waiting list: "<id> <payload>". In `held`: "<id> <deliveries> <priority> <since> <worker> <payload>".
-- Elsewhere: the same as a MessagePack array behind the id in 16 digits, which makes members unique and
-- sorts equal scores by age.

local SINCE = fmt('%.2f', now)

local function held_record(id, deliveries, priority, worker, payload)
    return id .. ' ' .. int(deliveries) .. ' ' .. int(priority) .. ' ' .. SINCE .. ' ' .. worker .. ' ' .. payload
end

local function read_held(record)
    local id, deliveries, priority, since, worker, at =
        string.match(record, '^(%d+) (%d+) (%-?%d+) (%S+) (%S+) ()')
    return { id = id, deliveries = tonumber(deliveries), priority = tonumber(priority),
        since = tonumber(since), worker = worker, payload = string.sub(record, at) }
end

local function put_back(h, request)
    open_queue(h, request.priority)
    redis.call('ZADD', PREFIX .. 'back:' .. request.priority .. ':' .. h.key, request.id,
        fmt('%016d', request.id) .. request.deliveries .. ' ' .. request.payload)
end

local function put_off(h, request, due)
    redis.call('ZADD', DELAYED, due, fmt('%016d', request.id) .. cmsgpack.pack({
        h.key, request.priority, request.deliveries, request.cause, request.error, request.retries,
        request.payload
    }))
end

local function read_delayed(text)
    local f = cmsgpack.unpack(string.sub(text, 17))
    return { id = tonumber(string.sub(text, 1, 16)), host = f[1], priority = f[2], deliveries = f[3],
        cause = f[4], error = f[5], retries = f[6], payload = f[7] }
end

-- How many requests have become dead letters and are nothing else since. Kept beside the list, from which
-- anybody may take letters, and put some in.
local function count_buried(by)
    redis.call('HINCRBY', META, 'buried', by)
end

-- How often it was tried again. In `extra`, which comes later, the user may have a field of that name.
local function retries_of(payload)
    local extra = string.find(payload, '"extra":{', 9, true)
    local at, _, retries = string.find(payload, '"retry_count":(%d+)', 9)
    return at and not (extra and extra < at) and tonumber(retries) or 0
end

-- A dead letter is the request's own JSON object, continued. The caller counts it in `ended`, see `end_visits`.
local function bury(request)
    count_buried(1)
    local fingerprint = string.gsub(string.sub(request.payload, 1, 8), '.', function(byte)
        return fmt('%02x', string.byte(byte))
    end)
    redis.call('RPUSH', DEAD, string.sub(request.payload, 9, -2)
        .. ',"cause":' .. cjson.encode(request.cause) .. ',"error":' .. cjson.encode(request.error)
        .. ',"deliveries":' .. request.deliveries .. ',"worker":' .. cjson.encode(request.worker)
        .. ',"at":' .. exact(now) .. ',"id":' .. int(request.id)
        .. ',"fingerprint":"' .. fingerprint .. '"}')
    count('dead', 1)
end

-- What the page budget counts.
local function end_visits(by)
    if by > 0 then
        redis.call('HINCRBY', META, 'ended', by)
    end
end

-- Take these leases away from whoever holds them; `conclude` says where each request goes. The others
-- among `tokens` are left out.
local function end_leases(h, tokens, conclude)
    local records = hmget(PREFIX .. 'held:' .. h.key, tokens)
    local ended, gone = {}, {}
    for i, token in ipairs(tokens) do
        if records[i] then
            ended[#ended + 1] = token
            gone[#gone + 1] = token .. ' ' .. h.key
            conclude(read_held(records[i]), token)
        end
    end
    if #ended > 0 then
        many('HDEL', PREFIX .. 'held:' .. h.key, ended)
        many('ZREM', EXPIRY, gone)
        touch(h)
    end
    return #ended
end
