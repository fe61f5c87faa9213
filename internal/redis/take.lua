-- Takes a token from a bucket (GCRA), if it has one, and returns how many
-- microseconds it lacked before to be full. The key holds the time at which the
-- bucket is full again and goes away then.
-- KEYS[1] the bucket; ARGV[1] microseconds of one token; ARGV[2] of a full bucket;
-- ARGV[3] '1' to take, '0' to look only.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local token, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local full = tonumber(redis.call('GET', KEYS[1])) or now
-- A clock that stepped back, or that of another node, must not lock anybody out.
full = math.max(now, math.min(full, now + window))
local missing = full - now
if ARGV[3] == '1' and missing + token <= window then
  redis.call('SET', KEYS[1], string.format('%.0f', full + token), 'PX', math.ceil((missing + token) / 1000))
end
return missing
