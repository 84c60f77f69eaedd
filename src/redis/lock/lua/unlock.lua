-- Releases a lock regardless of its owner. The holder notices with its next call.
-- KEYS  lock, holds, queue, places
-- ARGV  channel
-- Returns 1, or 0 if the lock was free
local line
--@make line line.lua
local time = redis.call('TIME')
local found = redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[2])
line.call(ARGV[1], line.first(KEYS[3], KEYS[4], time[1] * 1000 + math.floor(time[2] / 1000)))
return found
