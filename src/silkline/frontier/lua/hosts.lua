-- Hosts: their limits, their queues, and from when each queue is due.
--
-- A host's state is one field of `hosts`. Its waiting requests are in `wait:<priority>:<host>` (a list, in
-- order of arrival) and those that came back in `back:<priority>:<host>` (a sorted set by the same order;
-- whatever came back was taken from the head of the list, so all of it goes first). What it has in flight
-- is `held:<host>` (token -> record). Every queue with something in it is a member of `due:<priority>`,
-- scored with the moment from which it is due, infinite while the host has no free slot.
local hosts = {}
local host_count
local touched = {}

-- Hosts that became due at the same moment are served in the order of their last token, then of their age.
local function member(h)
    return fmt('%016.0f%010d', h.turn, h.order) .. h.key
end

local MEMBER_HEAD = 26

local function save(h)
    redis.call('HSET', HOSTS, h.key, cmsgpack.pack({
        h.order, h.last_start, h.last_token, h.blocked, h.delay, h.cap, h.turn, h.queues,
        h.pace_cap, h.pace_delay
    }))
end

local function host(key)
    local h = hosts[key]
    if h then
        return h
    end
    local packed = redis.call('HGET', HOSTS, key)
    if packed then
        local f = cmsgpack.unpack(packed)
        h = { key = key, order = f[1], last_start = f[2], last_token = f[3], blocked = f[4],
            delay = f[5], cap = f[6], turn = f[7], queues = f[8], pace_cap = f[9] or false,
            pace_delay = f[10] or false }
    else
        host_count = host_count or redis.call('HLEN', HOSTS)
        h = { key = key, order = host_count, last_start = 0, last_token = 0, blocked = 0,
            delay = false, cap = false, turn = 0, queues = {}, pace_cap = false, pace_delay = false }
        host_count = host_count + 1
        save(h)
    end
    h.fresh = {}
    hosts[key] = h
    return h
end

local function touch(h)
    touched[h.key] = h
end

-- A pace counts only under a ceiling.
local function delay_of(h)
    local own = h.delay or call.delay
    if h.pace_delay and call.ceiling then
        return max(own, h.pace_delay)
    end
    return own
end

local function cap_of(h)
    if h.pace_cap and call.ceiling then
        return min(h.cap or h.pace_cap, h.pace_cap, call.ceiling)
    end
    return h.cap or call.per_host
end

local function free_slots(h)
    return cap_of(h) - redis.call('HLEN', PREFIX .. 'held:' .. h.key)
end

-- Something waits at this priority: the queue exists from now on; settle() puts it in its place.
local function open_queue(h, priority)
    if not h.queues[priority] then
        h.queues[priority] = now
        h.fresh[priority] = true
        redis.call('ZADD', LEVELS, priority, priority)
    end
    touch(h)
end

local function queue_length(h, priority)
    local name = priority .. ':' .. h.key
    return redis.call('LLEN', PREFIX .. 'wait:' .. name) + redis.call('ZCARD', PREFIX .. 'back:' .. name)
end

-- No free slot: -1 in the state, infinite in the sorted set.
local FULL = -1
local became_due = false

-- Make the queues of one host true again after anything changed there.
local function settle(h)
    local free = free_slots(h)
    local earliest = max(h.last_start + delay_of(h), h.blocked)
    local old_member = member(h)
    local moved = h.turn ~= h.last_token
    h.turn = h.last_token
    for priority, due in pairs(h.queues) do
        local key = PREFIX .. 'due:' .. priority
        if queue_length(h, priority) == 0 then
            redis.call('ZREM', key, old_member)
            h.queues[priority] = nil
            if redis.call('EXISTS', key) == 0 then
                redis.call('ZREM', LEVELS, priority)
            end
        else
            local new = FULL
            if free > 0 then
                new = max((due == FULL or h.forget) and now or due, earliest)
            end
            if new ~= due or moved or h.fresh[priority] then
                if moved and not h.fresh[priority] then
                    redis.call('ZREM', key, old_member)
                end
                redis.call('ZADD', key, new == FULL and '+inf' or new, member(h))
                became_due = became_due or (new ~= FULL and (due == FULL or h.fresh[priority]))
            end
            h.queues[priority] = new
        end
    end
    h.fresh, h.forget = {}, false
    save(h)
end

-- Limits have changed: what the old ones said about when it is due counts no more.
local function forget_due(h)
    h.forget = true
    touch(h)
end

local function settle_touched()
    for _, h in pairs(touched) do
        settle(h)
    end
    touched = {}
end
