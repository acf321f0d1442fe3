-- needs: hosts, requests
-- Hosts that are to be left alone and have something waiting or delayed. call: limit (entries looked at, at most).
-- Reply: {now, then for each: key, until when}
local reply, seen = { exact(now) }, {}
local function look(key)
    local h = host(key)
    if h.blocked > now and not seen[key] then
        seen[key] = true
        reply[#reply + 1], reply[#reply + 2] = key, exact(h.blocked)
    end
end

for _, level in ipairs(redis.call('ZREVRANGE', LEVELS, 0, -1)) do
    local members = redis.call('ZRANGEBYSCORE', PREFIX .. 'due:' .. level, '(' .. exact(now), '+inf',
        'LIMIT', 0, call.limit)
    for _, text in ipairs(members) do
        look(string.sub(text, MEMBER_HEAD + 1))
    end
end
for _, text in ipairs(redis.call('ZRANGE', DELAYED, 0, call.limit - 1)) do
    look(read_delayed(text).host)
end
return reply
