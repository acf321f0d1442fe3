-- Which fingerprints were ever added, in step with the queue: marked and enqueued by one script.
--
-- exact: small sets of integers, which the server keeps as sorted arrays of 8 bytes an entry up to 512
-- entries. Fingerprints are spread over 2^12 of them; when these hold 256 on average, a generation with
-- four times as many is opened for what comes later. So a URL costs 8 to 12 bytes at any size, and a
-- lookup one command for each generation (1 up to a million URLs, 4 up to eighty million).
-- bloom: layers of bits, each one twice as large as the one before and half as likely to err.
local FIRST_BITS, STEP_BITS, PER_BUCKET = 12, 2, 256
local generations, newest_count
local shapes = {}

-- What the keys of a generation begin with, and how many there are.
local function shape_of(generation)
    if not shapes[generation] then
        shapes[generation] = { prefix = PREFIX .. 'seen:' .. int(generation) .. ':',
            buckets = 2 ^ (FIRST_BITS + STEP_BITS * (generation - 1)) }
    end
    return shapes[generation]
end

local function bucket_key(generation, fingerprint)
    local shape = shapes[generation] or shape_of(generation)
    -- The last digits of a 64-bit number are as good as random.
    return shape.prefix .. int(sub(fingerprint, -9) % shape.buckets)
end

local function load_generations()
    if not generations then
        local kept = redis.call('HMGET', META, 'generations', 'newest_count')
        generations, newest_count = tonumber(kept[1] or 1), tonumber(kept[2] or 0)
    end
end

local function seen_before_newest(fingerprint)
    for generation = 1, generations - 1 do
        if redis.call('SISMEMBER', bucket_key(generation, fingerprint), fingerprint) == 1 then
            return true
        end
    end
    return false
end

local bloom

local function load_bloom()
    if not bloom then
        local kept = redis.call('HMGET', META, 'bloom_layers', 'bloom_count', 'bloom_capacity', 'bloom_error')
        bloom = { layers = tonumber(kept[1] or 1), count = tonumber(kept[2] or 0),
            capacity = tonumber(kept[3]), error = tonumber(kept[4]) }
    end
end

-- Size and number of hashes of a layer. The errors of all layers sum up to twice that of the first, so
-- the first gets half of what was asked for.
local function bloom_shape(layer)
    local capacity = bloom.capacity * 2 ^ (layer - 1)
    local error = bloom.error / 2 ^ layer
    local bits = min(2 ^ 32 - 8, math.ceil(capacity * -math.log(error) / 0.4804530139182014))
    return bits, max(1, math.ceil(-math.log(error) / 0.6931471805599453)), capacity
end

-- The bits of a fingerprint: double hashing over its two halves of nine digits.
local function bloom_bits(layer, fingerprint)
    local digits = fmt('%20s', string.gsub(fingerprint, '-', '7'))
    local a = tonumber(string.sub(digits, -9))
    local b = tonumber(string.sub(digits, -18, -10)) or 0
    local bits, hashes = bloom_shape(layer)
    local at, step = (a * 2654435 + b * 40503) % bits, (b * 2246822 + a * 32749) % bits
    local places = {}
    for n = 1, hashes do
        places[n] = int((at + n * step + n * n * n) % bits)
    end
    return places
end

local function bloom_has(layer, fingerprint)
    local key = PREFIX .. 'seen:bloom:' .. layer
    for _, place in ipairs(bloom_bits(layer, fingerprint)) do
        if redis.call('GETBIT', key, place) == 0 then
            return false
        end
    end
    return true
end

local function bloom_add(fingerprint)
    load_bloom()
    for layer = 1, bloom.layers do
        if bloom_has(layer, fingerprint) then
            return false
        end
    end
    local key = PREFIX .. 'seen:bloom:' .. bloom.layers
    for _, place in ipairs(bloom_bits(bloom.layers, fingerprint)) do
        redis.call('SETBIT', key, place, 1)
    end
    bloom.count = bloom.count + 1
    local _, _, capacity = bloom_shape(bloom.layers)
    if bloom.count >= capacity then
        bloom.layers, bloom.count = bloom.layers + 1, 0
    end
    return true
end

-- Mark as seen; false for what was seen before.
local function first_time(fingerprint)
    if call.dedup == 'none' then
        return true
    elseif call.dedup == 'bloom' then
        return bloom_add(fingerprint)
    end
    load_generations()
    if seen_before_newest(fingerprint)
        or redis.call('SADD', bucket_key(generations, fingerprint), fingerprint) == 0 then
        return false
    end
    newest_count = newest_count + 1
    if newest_count >= PER_BUCKET * shape_of(generations).buckets then
        generations, newest_count = generations + 1, 0
    end
    return true
end

-- Whether it was ever added (bloom: most likely); none: not known.
local function was_seen(fingerprint)
    if call.dedup == 'bloom' then
        load_bloom()
        for layer = 1, bloom.layers do
            if bloom_has(layer, fingerprint) then
                return true
            end
        end
        return false
    end
    load_generations()
    return seen_before_newest(fingerprint)
        or redis.call('SISMEMBER', bucket_key(generations, fingerprint), fingerprint) == 1
end

local function save_seen()
    if generations then
        redis.call('HSET', META, 'generations', generations, 'newest_count', newest_count)
    end
    if bloom then
        redis.call('HSET', META, 'bloom_layers', bloom.layers, 'bloom_count', bloom.count)
    end
end

-- Enqueue what is new. runs: {{host, priority, count}, ...}, in order of arrival; for each request two
-- arguments from `first` on: its fingerprint as a decimal number, and its payload. Returns how many, how many
-- more there were beyond call.max_pages_per_host, and the payload of one of these, or ''.
local function enqueue(runs, first)
    local last_id = tonumber(redis.call('HGET', META, 'last_id') or 0)
    local before = last_id
    local most, refused, example = call.max_pages_per_host, 0, ''
    for _, run in ipairs(runs) do
        local h, priority = host(run[1]), run[2]
        local taken = most and tonumber(redis.call('HGET', PREFIX .. 'taken', h.key) or 0)
        local entries, n = {}, 0
        for i = first, first + 2 * (run[3] - 1), 2 do
            if most and taken >= most then
                if not was_seen(ARGV[i]) then
                    refused = refused + 1
                    example = example ~= '' and example or ARGV[i + 1]
                end
            elseif first_time(ARGV[i]) then
                taken = most and taken + 1
                last_id = last_id + 1
                n = n + 1
                entries[n] = int(last_id) .. ' ' .. ARGV[i + 1]
            end
        end
        first = first + 2 * run[3]
        if most and n > 0 then
            redis.call('HSET', PREFIX .. 'taken', h.key, taken)
        end
        if n > 0 then
            for i = 1, n, CHUNK do
                redis.call('RPUSH', PREFIX .. 'wait:' .. priority .. ':' .. h.key,
                    unpack(entries, i, min(i + CHUNK - 1, n)))
            end
            if not h.queues[priority] then
                open_queue(h, priority)
            end
        end
    end
    if last_id > before then
        redis.call('HSET', META, 'last_id', int(last_id))
        count('added', last_id - before)
        save_seen()
    end
    return last_id - before, refused, example
end
