-- needs: hosts
-- One host's own limits. call: host; seconds to block it; own_delay, cap (nil: as before); only_raise.
local h = host(call.host)
if call.seconds then
    h.blocked = max(h.blocked, now + call.seconds)
end
if call.set then
    if call.own_delay and call.only_raise and h.delay then
        call.own_delay = max(call.own_delay, h.delay)
    end
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
