-- Create the job, or learn what it is. call: epoch (of a new job), job, version, partitions, dedup,
-- bloom_capacity, bloom_error, ignore_params. Reply: all of meta.
if redis.call('EXISTS', META) == 0 then
    redis.call('HSET', META, 'epoch', call.new_epoch, 'job', call.job, 'version', call.version,
        'partitions', call.partitions, 'dedup', call.dedup, 'bloom_capacity', call.bloom_capacity,
        'bloom_error', exact(call.bloom_error), 'ignore_params', call.ignore_params, 'created', exact(now))
end
return redis.call('HGETALL', META)
