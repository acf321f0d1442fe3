-- ARGV: url, owner, variant, id
local member = ARGV[1] .. ':' .. ARGV[2]
local key = p .. 'r:' .. member
if is_written_as(key, ARGV[3], ARGV[4]) then
  remove(key, member, ARGV[3])
end
return 0
