-- needs: hosts
-- One host's own limits. call: host; seconds to block it; delay, cap (nil: as before).
local h = host(call.host)
if call.seconds then
    h.blocked = max(h.blocked, now + call.seconds)
end
if call.set then
    h.delay = call.own_delay or h.delay
    h.cap = call.cap or h.cap
    -- Forget what the old limits said.
    for priority in pairs(h.queues) do
        h.queues[priority] = FULL
    end
end
settle(h)
if became_due then
    tell('work')
end
return {}
