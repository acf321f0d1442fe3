-- needs: hosts, requests
-- Hosts with something waiting or in flight. call: limit (hosts looked at, at most); key (nil: all of them; else this one only, whatever it has).
-- Reply: {hosts known, since when the oldest lease is held or '', now, then for each host: key, waiting, leased, delay, cap, next start, blocked, cap and delay of its pace}
local found, order = {}, {}
local function look(key)
    if not found[key] and #order < call.limit then
        found[key] = true
        order[#order + 1] = key
    end
end
if call.key and redis.call('HEXISTS', HOSTS, call.key) == 1 then
    look(call.key)
end
for _, level in ipairs(call.key and {} or redis.call('ZREVRANGE', LEVELS, 0, -1)) do
    for _, text in ipairs(redis.call('ZRANGE', PREFIX .. 'due:' .. level, 0, call.limit - 1)) do
        look(string.sub(text, MEMBER_HEAD + 1))
    end
end
local oldest = ''
for _, text in ipairs(call.key and {} or redis.call('ZRANGE', EXPIRY, 0, call.limit - 1)) do
    local token, key = string.match(text, '^(%d+) (.*)$')
    look(key)
    local since = read_held(redis.call('HGET', PREFIX .. 'held:' .. key, token)).since
    oldest = exact(min(since, tonumber(oldest) or since))
end
local reply = { redis.call('HLEN', HOSTS), oldest, exact(now) }
for _, key in ipairs(order) do
    local h = host(key)
    local waiting = 0
    for priority in pairs(h.queues) do
        waiting = waiting + queue_length(h, priority)
    end
    local n = #reply
    reply[n + 1], reply[n + 2] = key, waiting
    reply[n + 3] = redis.call('HLEN', PREFIX .. 'held:' .. key)
    reply[n + 4] = h.delay and exact(h.delay) or ''
    reply[n + 5] = h.cap and int(h.cap) or ''
    reply[n + 6] = exact(h.last_start + delay_of(h))
    reply[n + 7] = exact(h.blocked)
    reply[n + 8] = h.pace_cap and int(h.pace_cap) or ''
    reply[n + 9] = h.pace_delay and exact(h.pace_delay) or ''
end
return reply
