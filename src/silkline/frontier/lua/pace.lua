-- needs: hosts
-- How fast hosts are asked because of what they answer. call: hosts, changes {{host, cap, delay, block}, ...}.
-- ARGV from 2 on, for each change: the state that it was decided on ('' for none), and the new one.
-- Reply: {now, then for each of `hosts` whose pace others have changed meanwhile: host, state or ''}; and for
-- those of call.hosts that have no change: the same.
local reply = { exact(now) }
local function tell_state(key)
    local n = #reply
    reply[n + 1], reply[n + 2] = key, redis.call('HGET', PACES, key) or ''
end

for i, change in ipairs(call.changes) do
    local key, cap, delay, block = unpack(change)
    if (redis.call('HGET', PACES, key) or '') ~= ARGV[2 * i] then
        tell_state(key)
    else
        redis.call('HSET', PACES, key, ARGV[2 * i + 1])
        local h = host(key)
        h.pace_cap, h.pace_delay = cap, delay
        if block > 0 then
            h.blocked = max(h.blocked, now + block)
        end
        forget_due(h)
    end
end
settle_touched()
for _, key in ipairs(call.hosts) do
    tell_state(key)
end
if became_due then
    tell('work')
end
return reply
