-- Extends the permit of one hold.
-- KEYS  permits
-- ARGV  id of the hold, lease in ms
-- Returns 1, or 0 if the permit has expired
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local endsAt = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
if endsAt <= nowMs then return 0 end
redis.call('ZADD', KEYS[1], math.max(endsAt, nowMs + ARGV[2]), ARGV[1])
redis.call('PEXPIREAT', KEYS[1], redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])
return 1
