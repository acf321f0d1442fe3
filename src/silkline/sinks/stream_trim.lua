-- Delete the entries of pages whose place is not below a number, as far as they are known.
-- KEYS: the stream; two hashes of identities. ARGV: two for each page: its identities' head, the number.
local removed = 0
for i = 1, #ARGV, 2 do
    local last = -1
    for hash = 2, 3 do
        last = math.max(last, tonumber(redis.call('HGET', KEYS[hash], ARGV[i]) or -1))
    end
    for index = tonumber(ARGV[i + 1]), last do
        local identity = ARGV[i] .. '-' .. string.format('%d', index)
        for hash = 2, 3 do
            local known = redis.call('HGET', KEYS[hash], identity)
            if known then
                removed = removed + redis.call('XDEL', KEYS[1], string.match(known, ' (.*)$'))
                redis.call('HDEL', KEYS[hash], identity)
            end
        end
    end
end
return removed
