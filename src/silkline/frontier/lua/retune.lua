-- needs: hosts
-- The job's own limits have changed: say again from when the queues of these hosts are due. call.hosts
for _, key in ipairs(call.hosts) do
    local h = host(key)
    for priority in pairs(h.queues) do
        h.queues[priority] = FULL
    end
    touch(h)
end
settle_touched()
if became_due then
    tell('work')
end
return {}
