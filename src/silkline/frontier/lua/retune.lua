-- needs: hosts
-- The job's own limits have changed: say again from when the queues of these hosts are due. call.hosts
for _, key in ipairs(call.hosts) do
    forget_due(host(key))
end
settle_touched()
if became_due then
    tell('work')
end
return {}
