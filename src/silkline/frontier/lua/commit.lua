-- needs: hosts, requests, seen
-- Finish leases, all or nothing: record done, retry or dead, enqueue links, keep the sinks' positions.
-- call: done {{host, {token, ...}}, ...}; others {{token, host, verdict, after, cause, error, block,
--   dead_items, ended, led, target, priority, here}, ...}, dead_items: whether it has some; ended: whether the
--   page budget counts it; led: whether redirects have led the request to that host; target, priority: where a
--   'moved' one waits from now on, here: whether that is in this partition; 'spared' is a retry that costs none;
--   urls: how many URLs of done pages to keep, or 0; positions {{sink, new, old or false}, ...}; runs: links;
--   claims: fingerprints (decimal) that are not seen yet, and are from now on.
-- ARGV from 2 on: those URLs, then for each of the others that is a retry or moved its payload as it is then,
--   and for each that has dead items its page (see items.lua), then the links.
-- Reply: {'ok', added, refused, example}; {'stale', token, ...}, {'moved'} (a position is not what the caller
--   believes) or {'claimed'} (one of the claims is seen), and then nothing has changed.
local stale = {}
for _, group in ipairs(call.done) do
    local gone = {}
    local behind, tokens = ' ' .. group[1], group[2]
    for i = 1, #tokens do
        gone[i] = tokens[i] .. behind
    end
    group.gone = gone
    for first = 1, #gone, CHUNK do
        local last = min(first + CHUNK - 1, #gone)
        local expiries = redis.call('ZMSCORE', EXPIRY, unpack(gone, first, last))
        for i = first, last do
            if not expiries[i - first + 1] then
                stale[#stale + 1] = group[2][i]
            end
        end
    end
end
for _, outcome in ipairs(call.others) do
    if redis.call('HEXISTS', PREFIX .. 'held:' .. outcome[2], outcome[1]) == 0 then
        stale[#stale + 1] = outcome[1]
    end
end
if #stale > 0 then
    table.insert(stale, 1, 'stale')
    return answered(stale)
end
for _, position in ipairs(call.positions) do
    if redis.call('HGET', PREFIX .. 'positions', position[1]) ~= position[3] then
        return answered({ 'moved' })
    end
end
for _, fingerprint in ipairs(call.claims) do
    if was_seen(fingerprint) then
        return answered({ 'claimed' })
    end
end

local function are_lists_fit()
    if call.urls > 0 then
        redis.call('SCARD', PREFIX .. 'url:done')
    end
    for _, outcome in ipairs(call.others) do
        if outcome[3] == 'dead' then
            return redis.call('LLEN', DEAD)
        end
    end
end
are_lists_fit()

local finished = 0
for _, group in ipairs(call.done) do
    finished = finished + many('ZREM', EXPIRY, group.gone)
    many('HDEL', PREFIX .. 'held:' .. group[1], group[2])
    -- A freed slot matters only where there was none, which spares most hosts.
    local h = host(group[1])
    for _, due in pairs(h.queues) do
        if due == FULL then
            touch(h)
        end
    end
end

local argument = 2
if call.urls > 0 then
    for i = argument, argument + call.urls - 1, CHUNK do
        redis.call('SADD', PREFIX .. 'url:done', unpack(ARGV, i, min(i + CHUNK, argument + call.urls) - 1))
    end
    argument = argument + call.urls
end

local retried, ended = 0, finished
for _, outcome in ipairs(call.others) do
    local token, key, verdict, after, cause, error, block, dead_items, counts, led, target, priority, here =
        unpack(outcome)
    local h = host(key)
    end_leases(h, { token }, function(request)
        request.cause, request.error = cause, error
        ended = ended + (counts and 1 or 0)
        if verdict == 'done' then
            finished = finished + 1
            if led then
                redis.call('HDEL', AWAY, string.sub(request.payload, 1, 8))
            end
            if dead_items then
                redis.call('ZADD', DEAD_ITEMS, exact(now), fmt('%016d', request.id) .. ARGV[argument])
                argument = argument + 1
            end
        elseif verdict == 'retry' or verdict == 'spared' then
            request.payload = ARGV[argument]
            argument = argument + 1
            if verdict == 'spared' then
                request.deliveries = request.deliveries - 1
            end
            request.retries = retries_of(request.payload)
            put_off(h, request, now + after)
            retried = retried + 1
        elseif verdict == 'moved' then
            request.payload = ARGV[argument]
            argument = argument + 1
            request.deliveries, request.priority = request.deliveries - 1, priority
            redis.call('HSET', AWAY, string.sub(request.payload, 1, 8), target)
            if here then
                put_back(host(target), request)
            else
                redis.call('RPUSH', LEAVING, int(redis.call('HINCRBY', META, 'sent', 1)) .. ' '
                    .. int(request.deliveries) .. ' ' .. int(priority) .. ' ' .. target .. ' ' .. request.payload)
            end
        else
            bury(request)
        end
    end)
    if block > 0 then
        h.blocked = max(h.blocked, now + block)
    end
end
if finished > 0 then
    redis.call('HINCRBY', META, 'done', finished)
    count('done', finished)
end
end_visits(ended)
if retried > 0 then
    count('retried', retried)
end

for _, fingerprint in ipairs(call.claims) do
    first_time(fingerprint)
    redis.call('SADD', PREFIX .. 'aliases', fingerprint)
end
if #call.claims > 0 then
    save_seen()
end
local added, refused, example = enqueue(call.runs, argument)
settle_touched()
for _, position in ipairs(call.positions) do
    redis.call('HSET', PREFIX .. 'positions', position[1], position[2])
end
if became_due then
    tell('work')
elseif redis.call('EXISTS', LEVELS, EXPIRY, DELAYED, INBOX, LEAVING) == 0 then
    tell('finished')
elseif retried > 0 then
    tell('later')
end
return answered({ 'ok', added, refused, example })
