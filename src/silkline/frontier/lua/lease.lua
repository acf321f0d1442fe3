-- needs: hosts, requests, sweep
-- Hand out requests whose hosts are due. call: count, worker, max_pages, lease_seconds, window; least_share,
--   hunger, second_helping: see rules.py; answered: by lane, the last call that the worker knows to be done.
-- Reply: {budget or -1, next expiry, next delayed, next queue (each '' for none), open places (0: finished),
--   inbox, now, 1 if an answered call is lost, what leaves for other partitions, then for each lease: token,
--   deliveries, starts_in, host, payload, delay}
wake_delayed()
take_back_expired()
settle_touched()

local meta = redis.call('HMGET', META, 'ended', 'last_token')
local budget = -1
local want = call.count
if call.max_pages then
    budget = max(0, call.max_pages - tonumber(meta[1] or 0) - redis.call('ZCARD', EXPIRY))
    want = min(want, budget)
end

local taken, room = {}, {}
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

-- How many requests a due host may get in one lease: of its free slots, and starts inside the window.
local function room_of(h)
    if not room[h.key] then
        local free, delay = share_of(free_slots(h)), delay_of(h)
        room[h.key] = delay > 0 and min(free, 1 + floor(call.window / delay)) or free
    end
    return room[h.key] - (taken[h.key] or 0)
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

-- Take the first requests of a queue out of it.
local function pop(h, priority, count)
    local name = priority .. ':' .. h.key
    local requests = {}
    local back = redis.call('ZPOPMIN', PREFIX .. 'back:' .. name, count)
    for i = 1, #back, 2 do
        local deliveries, at = string.match(back[i], '^(%d+) ()', 17)
        requests[#requests + 1] = { id = int(tonumber(back[i + 1])), deliveries = tonumber(deliveries),
            payload = string.sub(back[i], at) }
    end
    if #requests < count then
        local waiting = redis.call('LPOP', PREFIX .. 'wait:' .. name, count - #requests)
        for _, entry in ipairs(waiting or {}) do
            local space = string.find(entry, ' ', 1, true)
            requests[#requests + 1] = { id = string.sub(entry, 1, space - 1), deliveries = 0,
                payload = string.sub(entry, space + 1) }
        end
    end
    return requests
end

-- A token is never given twice: not even after a server came back with an older state, since it is no
-- smaller than the server's time in microseconds. (With a clock of the caller's own they just count.)
local token = tonumber(meta[2] or 0)
if not call.now then
    token = max(token, floor(now * 1e6))
end
local first_token = token
local leases, records, expiries = {}, {}, {}
local soon = exact(now + call.lease_seconds)

local function give(h, priority, request)
    local before = taken[h.key] or 0
    local delay = delay_of(h)
    local starts_in = before * delay
    token = token + 1
    taken[h.key] = before + 1
    h.last_start, h.last_token = now + starts_in, token
    touch(h)
    local text = int(token)
    records[h.key] = records[h.key] or {}
    local mine = records[h.key]
    local n = #mine
    mine[n + 1] = text
    mine[n + 2] = held_record(request.id, request.deliveries + 1, priority, call.worker, request.payload)
    n = #expiries
    expiries[n + 1] = starts_in > 0 and exact(now + starts_in + call.lease_seconds) or soon
    expiries[n + 2] = text .. ' ' .. h.key
    n = #leases
    -- One by one: several at once are assigned from the last, which makes a table of the array.
    leases[n + 1] = text
    leases[n + 2] = request.deliveries + 1
    leases[n + 3] = starts_in > 0 and exact(starts_in) or '0'
    leases[n + 4] = h.key
    leases[n + 5] = request.payload
    leases[n + 6] = delay > 0 and exact(delay) or '0'
end

for _, level in ipairs(redis.call('ZREVRANGE', LEVELS, 0, -1)) do
    local left = want - #leases / 6
    if left <= 0 then
        break
    end
    local priority = tonumber(level)
    local line = line_of(priority, left)
    local turns = rounds(line, left)
    for _, giver in ipairs(line) do
        if giver.count > 0 then
            giver.requests = pop(giver.host, priority, giver.count)
            giver.next = 1
        end
    end
    for _, giver in ipairs(turns) do
        give(giver.host, priority, giver.requests[giver.next])
        giver.next = giver.next + 1
    end
end

if token > first_token then
    redis.call('HSET', META, 'last_token', int(token))
    for key, pairs_of in pairs(records) do
        many('HSET', PREFIX .. 'held:' .. key, pairs_of)
    end
    many('ZADD', EXPIRY, expiries)
    settle_touched()
end
local short = #leases / 6 < call.count
if short then
    redis.call('SET', IDLE, 1, 'EX', 600)
    redis.call('ZREMRANGEBYSCORE', HUNGRY, '-inf', now - call.hunger)
    redis.call('ZADD', HUNGRY, now, call.worker)
end

-- A server that came back with an older state knows an older call, or none.
local function has_lost_calls()
    for lane, op in pairs(call.answered) do
        local last = redis.call('HGET', OPS, lane)
        if not last or tonumber(string.sub(last, RUN + 1, OP), 16) < tonumber(string.sub(op, RUN + 1), 16) then
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
local reply = { budget, first_score(EXPIRY), first_score(DELAYED), next_queue, open, inbox, exact(now),
    has_lost_calls(), leaving }
for i = 1, #leases do
    reply[9 + i] = leases[i]
end
return reply
