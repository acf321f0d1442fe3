-- Create the job, or learn what it is. call: epoch (of a new job), job, version, partitions, dedup,
-- bloom_capacity, bloom_error, ignore_params, politeness_by. Reply: all of meta.
-- Keys that others know by name fail here if they are of another type, not in the middle of something.
redis.call('LLEN', INBOX)
redis.call('LLEN', DEAD)
redis.call('HLEN', STATS)
redis.call('HLEN', PREFIX .. 'config')
redis.call('HLEN', PREFIX .. 'workers')
redis.call('SCARD', PREFIX .. 'url:done')
if redis.call('EXISTS', META) == 0 then
    redis.call('HSET', META, 'epoch', call.new_epoch, 'job', call.job, 'version', call.version,
        'partitions', call.partitions, 'dedup', call.dedup, 'bloom_capacity', call.bloom_capacity,
        'bloom_error', exact(call.bloom_error), 'ignore_params', call.ignore_params,
        'politeness_by', call.politeness_by, 'created', exact(now), 'buried', 0)
end
redis.call('HSETNX', META, 'buried', redis.call('LLEN', DEAD))
return redis.call('HGETALL', META)
