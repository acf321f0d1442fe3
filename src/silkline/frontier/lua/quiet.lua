-- Is there nothing to do? Reply: {0 for nothing, last id, last token}
local last = redis.call('HMGET', META, 'last_id', 'last_token')
return { redis.call('EXISTS', LEVELS, EXPIRY, DELAYED, INBOX, LEAVING), last[1] or '', last[2] or '' }
