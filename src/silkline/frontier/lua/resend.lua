-- needs: hosts, requests, seen
-- Take these dead letters out; with call.again they are waiting, in their old place, past the dedup.
-- call.letters {{host, priority, id, fingerprint (decimal), place}, ...}: the id is 0 for what another program
-- wrote, the place is where in the list it was read. ARGV from 2 on: for each the letter as it is in the list,
-- and its payload with the counts at zero.
-- Reply: {how many were there}. Who takes a letter out first has it; one that has moved is left alone.
local TAKEN = 'taken ' .. call.op
-- After a first write that needs no memory a script may go on: dropping letters must work on a full server.
redis.call('LREM', DEAD, 0, TAKEN)
local moved, ours = 0, 0
local last_id = tonumber(redis.call('HGET', META, 'last_id') or 0)
for i, letter in ipairs(call.letters) do
    local key, priority, id, fingerprint, place = unpack(letter)
    if redis.call('LINDEX', DEAD, place) == ARGV[2 * i] then
        -- Marked, and removed all at once: each LREM looks at the whole list.
        redis.call('LSET', DEAD, place, TAKEN)
        moved = moved + 1
        if id > 0 and id <= last_id then
            ours = ours + 1
        elseif call.again then
            id = redis.call('HINCRBY', META, 'last_id', 1)
            first_time(fingerprint)
        end
        if call.again then
            put_back(host(key), { id = int(id), priority = priority, deliveries = 0, payload = ARGV[2 * i + 1] })
        end
    end
end
redis.call('LREM', DEAD, 0, TAKEN)
count_buried(-ours)
save_seen()
if not call.again then
    redis.call('HINCRBY', META, 'done', ours)
end
settle_touched()
if became_due then
    tell('work')
end
return answered({ moved })
