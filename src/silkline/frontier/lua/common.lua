-- What every verb begins with. A verb's script is this file, the parts it names in its first line, and
-- its own file, one after the other; it runs as one atomic step.
--
-- KEYS[1]: <prefix>meta of one partition. All keys of a partition share the prefix (in a cluster with a
--   hash tag in it), so that a script touches one slot only.
-- ARGV[1]: the call as MessagePack:
--   epoch: which life of the job the caller means. lane, op: who calls, and the number of this call.
--   now: nil for the server's own clock.
local PREFIX = string.sub(KEYS[1], 1, -5)
local META = KEYS[1]
local OPS = PREFIX .. 'ops'
local EXPIRY = PREFIX .. 'expiry'
local DELAYED = PREFIX .. 'delayed'
local DEAD_ITEMS = PREFIX .. 'dead_items'
local DEAD = PREFIX .. 'task:dead'
local INBOX = PREFIX .. 'task:wait'
local STATS = PREFIX .. 'stats'
local HOSTS = PREFIX .. 'hosts'
local PACES = PREFIX .. 'paces'
local LEVELS = PREFIX .. 'levels'
local IDLE = PREFIX .. 'idle'
local HUNGRY = PREFIX .. 'hungry'
-- What redirects lead to a host of another partition: "<number> <deliveries> <priority> <host> <payload>".
local LEAVING = PREFIX .. 'leaving'
-- By the 8 bytes of a fingerprint, the host to which redirects have led the request.
local AWAY = PREFIX .. 'away'

local fmt, sub, max, min, floor = string.format, string.sub, math.max, math.min, math.floor
local call = cmsgpack.unpack(ARGV[1])

local now = call.now
if not now then
    local time = redis.call('TIME')
    now = tonumber(time[1]) + tonumber(time[2]) / 1e6
end

-- Full precision: tostring() and .. keep 14 digits only.
local function exact(number)
    return fmt('%.17g', number)
end

-- Printed as an integer, which takes a tenth of the time; exact up to 2^53.
local function int(number)
    return fmt('%d', number)
end

-- The most arguments that one command gets: the Lua stack holds some thousand.
local CHUNK = 1000

local function many(command, key, args)
    local changed = 0
    for first = 1, #args, CHUNK do
        changed = changed + redis.call(command, key, unpack(args, first, min(first + CHUNK - 1, #args)))
    end
    return changed
end

local function hmget(key, fields)
    if #fields <= CHUNK then
        return redis.call('HMGET', key, unpack(fields))
    end
    local values = {}
    for first = 1, #fields, CHUNK do
        local last = min(first + CHUNK - 1, #fields)
        local part = redis.call('HMGET', key, unpack(fields, first, last))
        for i = 1, last - first + 1 do
            values[first + i - 1] = part[i]
        end
    end
    return values
end

-- A job that was purged, or lost with the server's data, must not look like one that is finished.
if call.epoch and redis.call('HGET', META, 'epoch') ~= call.epoch then
    return redis.error_reply('GONE')
end

-- A call whose reply was lost is sent again under the same number; it is answered, not done again. A copy
-- that comes out of a given-up connection after a later call of its lane must not be done either, nor take
-- the later one's place here. An entry of `ops`: the run and the number of a call, 8 digits each; when, 10
-- digits; its reply.
local RUN, OP, STAMP = 8, 16, 26

-- Whether a server that came back with an older state has lost a call of this lane that the worker, which knows
-- its reply, gives the number of.
local function is_lost(last, op)
    return not last or string.sub(last, 1, RUN) ~= string.sub(op, 1, RUN)
        or tonumber(string.sub(last, RUN + 1, OP), 16) < tonumber(string.sub(op, RUN + 1), 16)
end

-- A lost call is told before the next one of its lane takes its place, else nobody would find out any more.
-- call.before: the last one whose reply has arrived.
if call.op then
    local last = redis.call('HGET', OPS, call.lane)
    if last and string.sub(last, 1, OP) == call.op then
        return cmsgpack.unpack(string.sub(last, STAMP + 1))
    elseif call.before and is_lost(last, call.before) then
        return redis.error_reply('FELLBACK')
    elseif last and string.sub(last, 1, RUN) == string.sub(call.op, 1, RUN)
        and tonumber(string.sub(last, RUN + 1, OP), 16) > tonumber(string.sub(call.op, RUN + 1), 16) then
        return redis.error_reply('SUPERSEDED')
    end
end

local function answered(reply)
    if call.op then
        redis.call('HSET', OPS, call.lane, call.op .. fmt('%010d', now) .. cmsgpack.pack(reply))
    end
    return reply
end

-- A script that fails half-way leaves what it has written. So whatever may fail because of what others did
-- is looked at before the first write (the public keys may be of any type), or may fail without harm.
local function count(name, by)
    redis.pcall('HINCRBY', STATS, name, by)
end

-- Tell idle workers that there may be work; nobody idle costs one lookup. Who may not publish is not heard.
local function tell(news)
    if call.channel and redis.call('DEL', IDLE) == 1 then
        redis.pcall('PUBLISH', call.channel, news)
    end
end
