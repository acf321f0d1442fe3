-- Which of these leases still hold? call.held {{host, {token, ...}}, ...}. Reply: the tokens that do not.
local lost = {}
for _, group in ipairs(call.held) do
    local records = hmget(PREFIX .. 'held:' .. group[1], group[2])
    for i, token in ipairs(group[2]) do
        if not records[i] then
            lost[#lost + 1] = token
        elseif call.lease_seconds then
            redis.call('ZADD', EXPIRY, 'XX', now + call.lease_seconds, token .. ' ' .. group[1])
        end
    end
end
return lost
