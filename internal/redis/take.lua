-- Takes a token from a bucket (GCRA), if it has one, and returns how many
-- microseconds it lacked before to be full. The key holds the time at which the
-- bucket is full again and goes away then.
-- KEYS[1] the bucket; ARGV[1] microseconds of one token; ARGV[2] of a full bucket;
-- ARGV[3] '1' to take, '0' to look only.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local token, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local full = tonumber(redis.call('GET', KEYS[1])) or now
local missing = math.max(full - now, 0)
local left = missing
-- More than a bucket can lack: the clock stepped back, or is that of another node.
-- The bucket is empty from now on, and fills up.
if missing > window then
  missing, left = window, window
elseif missing + token <= window then
  left = missing + token
end
if ARGV[3] == '1' and now + left ~= full and left > 0 then
  redis.call('SET', KEYS[1], string.format('%.0f', now + left), 'PX', math.ceil(left / 1000))
end
return missing
