-- Releases the permit and the queue slot of one hold.
-- KEYS  permits, queue, places
-- ARGV  id of the hold, channel
-- Returns 1, or 0 if the permit had already expired
local line
--@make line line.lua
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local endsAt = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
redis.call('ZREM', KEYS[1], ARGV[1])
line.leave(KEYS[2], KEYS[3], ARGV[1])
line.call(ARGV[2], line.first(KEYS[2], KEYS[3], nowMs))
return endsAt > nowMs and 1 or 0
