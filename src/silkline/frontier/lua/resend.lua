-- needs: hosts, requests
-- Take these dead letters out; with call.again they are waiting, in their old place, past the dedup.
-- call.letters {{host, priority, id}, ...}; ARGV from 2 on: for each the letter as it is in the list, and
-- its payload with the counts at zero. Reply: {how many were still there}
local moved = 0
for i, letter in ipairs(call.letters) do
    -- From the newest end, where they mostly are. Whoever takes it out first has it.
    if redis.call('LREM', DEAD, -1, ARGV[2 * i]) == 1 then
        moved = moved + 1
        if call.again then
            put_back(host(letter[1]), { id = letter[3], priority = letter[2], deliveries = 0,
                payload = ARGV[2 * i + 1] })
        else
            redis.call('HINCRBY', META, 'done', 1)
        end
    end
end
settle_touched()
if became_due then
    tell('work')
end
return answered({ moved })
