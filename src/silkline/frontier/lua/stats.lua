-- Sizes. Reply: {waiting, delayed, leased, done, dead, inbox}
local meta = redis.call('HMGET', META, 'last_id', 'done')
local delayed, leased = redis.call('ZCARD', DELAYED), redis.call('ZCARD', EXPIRY)
local dead, done = redis.call('LLEN', DEAD), tonumber(meta[2] or 0)
-- Every id that was ever given is in one place; those that wait are the rest.
return { tonumber(meta[1] or 0) - done - delayed - leased - dead, delayed, leased, done, dead,
    redis.call('LLEN', INBOX) }
