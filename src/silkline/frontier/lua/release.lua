-- needs: hosts, requests
-- Give back leases that were not started. call.held {{host, {token, ...}}, ...}.
-- call.all: everything of call.worker, too, but for the tokens in call.keep: finds leases whose reply never
-- arrived.
local function give_back(key, tokens)
    local h = host(key)
    end_leases(h, tokens, function(request)
        request.deliveries = request.deliveries - 1
        put_back(h, request)
    end)
end

for _, group in ipairs(call.held) do
    give_back(group[1], group[2])
end
if call.all then
    for _, text in ipairs(redis.call('ZRANGE', EXPIRY, 0, -1)) do
        local token, key = string.match(text, '^(%d+) (.*)$')
        local record = redis.call('HGET', PREFIX .. 'held:' .. key, token)
        if record and read_held(record).worker == call.worker and not (call.keep and call.keep[token]) then
            give_back(key, { token })
        end
    end
end
settle_touched()
if became_due then
    tell('work')
end
return {}
