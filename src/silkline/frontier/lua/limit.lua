-- needs: hosts
-- One host's own limits. call: host; seconds to block it; delay, cap (nil: as before).
local h = host(call.host)
if call.seconds then
    h.blocked = max(h.blocked, now + call.seconds)
end
if call.set then
    h.delay = call.own_delay or h.delay
    h.cap = call.cap or h.cap
    forget_due(h)
end
touch(h)
settle_touched()
if became_due then
    tell('work')
end
return {}
