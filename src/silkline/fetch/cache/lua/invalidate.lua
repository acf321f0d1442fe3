-- ARGV: url
for _, owner in ipairs(redis.call('SMEMBERS', p .. 'o:' .. ARGV[1])) do
  drop(ARGV[1] .. ':' .. owner)
end
return 0
