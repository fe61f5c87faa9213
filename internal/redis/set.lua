-- Sets a total unless a newer one is there.
-- KEYS[1] the total's key; ARGV[1] "version.count", the version in 20 digits, so
-- that versions compare as text: a number of Lua has 53 bits;
-- ARGV[2] time to live in milliseconds. An equal version renews the time.
local held = redis.pcall('GET', KEYS[1])
local version = type(held) == 'string' and held:match('^(%d+)%.%d+$')
if version and #version == 20 and version > ARGV[1]:sub(1, 20) then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
