-- needs: hosts, requests, sweep
-- Hand out requests whose hosts are due. call: count, worker, max_pages, lease_seconds, window; least_share,
--   hunger, second_helping: see rules.py; answered: by lane, the last call that the worker knows to be done.
-- Reply: {budget or -1, next expiry, next delayed, next queue (each '' for none), open places (0: finished),
--   inbox, now, 1 if an answered call is lost, what leaves for other partitions, 1 if max_pages have ended,
--   first token, then for each run of leases alike: host, deliveries, starts_in, delay, how many, their payloads}.
--   Each lease has the next token.
wake_delayed()
take_back_expired()
settle_touched()

local meta = redis.call('HMGET', META, 'ended', 'last_token')
local budget, reached = -1, 0
local want = call.count
if call.max_pages then
    local left = call.max_pages - tonumber(meta[1] or 0)
    reached = left <= 0 and 1 or 0
    budget = max(0, left - redis.call('ZCARD', EXPIRY))
    want = min(want, budget)
end

local are_others_hungry

-- `hungry`: the workers that lately got fewer leases than they asked for, by when that was.
local function others_hungry()
    if are_others_hungry == nil then
        are_others_hungry = false
        local last = redis.call('ZREVRANGE', HUNGRY, 0, 1, 'WITHSCORES')
        for i = 1, #last, 2 do
            if last[i] ~= call.worker and tonumber(last[i + 1]) > now - call.hunger then
                are_others_hungry = true
            end
        end
    end
    return are_others_hungry
end

-- Whoever asks first after a commit has freed slots would keep all of them for itself, again and again.
local function share_of(free)
    if free > call.least_share and others_hungry() then
        return max(call.least_share, floor(free / 2))
    end
    return free
end

-- How many more requests a due host may get in this lease: of its free slots, and starts inside the window.
local function room_of(h)
    if not h.room then
        local free, delay = share_of(free_slots(h)), delay_of(h)
        h.room = delay > 0 and min(free, 1 + floor(call.window / delay)) or free
        h.taken = 0
    end
    return h.room - h.taken
end

-- The due hosts of one priority that can give something, in their order.
local function line_of(priority, count)
    local line, offset = {}, 0
    repeat
        local members = redis.call('ZRANGEBYSCORE', PREFIX .. 'due:' .. priority, '-inf', now,
            'LIMIT', offset, count)
        for _, text in ipairs(members) do
            local h = host(string.sub(text, MEMBER_HEAD + 1))
            local most = min(room_of(h), queue_length(h, priority))
            if most > 0 and #line < count then
                line[#line + 1] = { host = h, most = most, count = 0 }
            end
        end
        offset = offset + #members
    until #members < count or #line >= count
    return line
end

-- Rounds: in each, every host in the line gives one. Returns the hosts in the order in which they give.
local function rounds(line, count)
    local turns, givers = {}, line
    if #line == 1 then
        line[1].count = min(line[1].most, count)
        for i = 1, line[1].count do
            turns[i] = line[1]
        end
        return turns
    end
    while #turns < count and #givers > 0 do
        local still = {}
        for _, giver in ipairs(givers) do
            if #turns < count then
                giver.count = giver.count + 1
                turns[#turns + 1] = giver
                if giver.count < giver.most then
                    still[#still + 1] = giver
                end
            end
        end
        givers = still
    end
    return turns
end

-- Take the first requests of a queue out of it: their records for `held`, their payloads, and which delivery
-- each one is, where it is not the first.
local function pop(h, priority, count)
    local name = priority .. ':' .. h.key
    local records, payloads, deliveries = {}, {}, {}
    local back = redis.call('ZPOPMIN', PREFIX .. 'back:' .. name, count)
    for i = 1, #back, 2 do
        local before, at = string.match(back[i], '^(%d+) ()', 17)
        local payload, delivery, n = sub(back[i], at), tonumber(before) + 1, #records + 1
        records[n] = held_record(int(tonumber(back[i + 1])), delivery, priority, call.worker, payload)
        payloads[n], deliveries[n] = payload, delivery
    end
    local n = #records
    if n < count then
        local middle = held_record('', 1, priority, call.worker, '')
        local find = string.find
        local waiting = redis.call('LPOP', PREFIX .. 'wait:' .. name, count - n) or {}
        for i = 1, #waiting do
            local entry = waiting[i]
            local space = find(entry, ' ', 1, true)
            local payload = sub(entry, space + 1)
            n = n + 1
            records[n] = sub(entry, 1, space - 1) .. middle .. payload
            payloads[n] = payload
        end
    end
    return records, payloads, deliveries
end

-- A token is never given twice: not even after a server came back with an older state, since it is no
-- smaller than the server's time in microseconds. (With a clock of the caller's own they just count.)
local token = tonumber(meta[2] or 0)
if not call.now then
    token = max(token, floor(now * 1e6))
end
local first_token = token
local records, expiries = {}, {}
local soon = exact(now + call.lease_seconds)
local reply = { budget, '', '', '', 0, 0, exact(now), 0, 0, reached, int(token + 1) }
local given = 0
local last, last_delivery, last_start, count_at

-- One request of each of these, in their order. In the reply those that are alike in all but their payloads
-- share one head.
local function give(turns)
    local n, e = #reply, #expiries
    for i = 1, #turns do
        local giver = turns[i]
        local h, next = giver.host, giver.next
        giver.next = next + 1
        token = token + 1
        local starts_in, text = 0, int(token)
        if giver.delay > 0 then
            starts_in = h.taken * giver.delay
        end
        h.taken = h.taken + 1
        h.last_start, h.last_token = now + starts_in, token
        local mine = records[h.key]
        local m = #mine
        mine[m + 1] = text
        mine[m + 2] = giver.records[next]
        expiries[e + 1] = starts_in > 0 and exact(now + starts_in + call.lease_seconds) or soon
        expiries[e + 2] = text .. ' ' .. h.key
        e = e + 2
        local delivery = giver.deliveries[next] or 1
        if h ~= last or delivery ~= last_delivery or starts_in ~= last_start then
            last, last_delivery, last_start, count_at = h, delivery, starts_in, n + 5
            reply[n + 1] = h.key
            reply[n + 2] = delivery
            reply[n + 3] = starts_in > 0 and exact(starts_in) or '0'
            reply[n + 4] = giver.delay > 0 and exact(giver.delay) or '0'
            reply[count_at] = 0
            n = count_at
        end
        n = n + 1
        reply[n] = giver.payloads[next]
        reply[count_at] = reply[count_at] + 1
    end
    given = given + #turns
end

for _, level in ipairs(redis.call('ZREVRANGE', LEVELS, 0, -1)) do
    local left = want - given
    if left <= 0 then
        break
    end
    local priority = tonumber(level)
    local line = line_of(priority, left)
    local turns = rounds(line, left)
    for _, giver in ipairs(line) do
        if giver.count > 0 then
            giver.records, giver.payloads, giver.deliveries = pop(giver.host, priority, giver.count)
            giver.next = 1
            giver.delay = delay_of(giver.host)
            records[giver.host.key] = records[giver.host.key] or {}
            touch(giver.host)
        end
    end
    give(turns)
end

if token > first_token then
    redis.call('HSET', META, 'last_token', int(token))
    for key, pairs_of in pairs(records) do
        many('HSET', PREFIX .. 'held:' .. key, pairs_of)
    end
    many('ZADD', EXPIRY, expiries)
    settle_touched()
end
local short = given < call.count
if short then
    redis.call('SET', IDLE, 1, 'EX', 600)
    redis.call('ZREMRANGEBYSCORE', HUNGRY, '-inf', now - call.hunger)
    redis.call('ZADD', HUNGRY, now, call.worker)
end

-- A server that came back with an older state knows an older call, or none.
local function has_lost_calls()
    for lane, op in pairs(call.answered) do
        if is_lost(redis.call('HGET', OPS, lane), op) then
            return 1
        end
    end
    return 0
end

local function first_score(key)
    return redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2] or ''
end

local next_queue = ''
for _, level in ipairs(redis.call('ZRANGE', LEVELS, 0, -1)) do
    local due = first_score(PREFIX .. 'due:' .. level)
    if due ~= 'inf' and due ~= '' and (next_queue == '' or tonumber(due) < tonumber(next_queue)) then
        next_queue = due
    end
end
if short and are_others_hungry and next_queue ~= '' and tonumber(next_queue) <= now then
    next_queue = exact(now + call.second_helping) -- what is due now is left to the others first
end
local inbox = redis.call('LLEN', INBOX)
local leaving = redis.call('LLEN', LEAVING)
local open = redis.call('ZCARD', LEVELS) + redis.call('ZCARD', EXPIRY) + redis.call('ZCARD', DELAYED) + inbox + leaving
reply[2], reply[3], reply[4] = first_score(EXPIRY), first_score(DELAYED), next_queue
reply[5], reply[6], reply[8], reply[9] = open, inbox, has_lost_calls(), leaving
return reply
