-- Sizes. Reply: {waiting, delayed, leased, done, dead, inbox}
local meta = redis.call('HMGET', META, 'last_id', 'done', 'buried', 'gone')
local delayed, leased = redis.call('ZCARD', DELAYED), redis.call('ZCARD', EXPIRY)
local dead, done = redis.call('LLEN', DEAD), tonumber(meta[2] or 0)
-- A dead letter that another program took out is dropped.
local buried = tonumber(meta[3] or dead)
-- Every id that was ever given, and is not gone to another partition, is in one place; those that wait are the rest.
return { tonumber(meta[1] or 0) - tonumber(meta[4] or 0) - done - delayed - leased - buried, delayed, leased,
    done + max(0, buried - dead), dead, redis.call('LLEN', INBOX) }
