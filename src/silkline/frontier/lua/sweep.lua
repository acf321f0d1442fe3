-- What time alone has changed: a bounded part of it, so that no lease takes long.
local function crash_backoff(deliveries, token)
    if deliveries <= call.quick_returns then
        return 0
    end
    return min(60, 2 ^ min(deliveries - 3, 6)) * (0.5 + token % 1000 * 619 % 1000 / 1000)
end

local function wake_delayed()
    local due = redis.call('ZRANGEBYSCORE', DELAYED, '-inf', now, 'LIMIT', 0, call.sweep)
    for _, text in ipairs(due) do
        local request = read_delayed(text)
        put_back(host(request.host), request)
    end
    if #due > 0 then
        many('ZREM', DELAYED, due)
    end
end

local function take_back_expired()
    local lost = redis.call('ZRANGEBYSCORE', EXPIRY, '-inf', now, 'LIMIT', 0, call.sweep)
    if #lost > 0 then
        redis.call('LLEN', DEAD)
    end
    local by_host = {}
    for _, text in ipairs(lost) do
        local token, key = string.match(text, '^(%d+) (.*)$')
        by_host[key] = by_host[key] or {}
        table.insert(by_host[key], token)
    end
    for key, tokens in pairs(by_host) do
        local h = host(key)
        end_leases(h, tokens, function(request, token)
            request.cause = 'crash'
            request.error = 'its worker died or hung ' .. request.deliveries .. ' times'
            request.retries = retries_of(request.payload)
            if request.deliveries >= call.max_deliveries then
                end_visits(1)
                bury(request)
            else
                local wait = crash_backoff(request.deliveries, tonumber(token))
                if wait == 0 then
                    put_back(h, request)
                else
                    put_off(h, request, now + wait)
                end
            end
        end)
    end
    if #lost > 0 then
        count('leases_lost', #lost)
    end
end
