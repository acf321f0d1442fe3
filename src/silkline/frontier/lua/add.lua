-- needs: hosts, seen
-- Mark as seen and enqueue. call.runs and ARGV from 2 on: see enqueue(). Reply: {added, refused, example}
local added, refused, example = enqueue(call.runs, 2)
settle_touched()
if became_due then
    tell('work')
end
return answered({ added, refused, example })
