-- Frees a lock, whoever holds it; the holder learns of it when it asks the next time.
-- KEYS  the lock, its holds, its queue, its places
-- ARGV  channel
-- Returns 1, or 0 if it was free
local line
--@make line line.lua
local time = redis.call('TIME')
local found = redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[2])
line.call(ARGV[1], line.first(KEYS[3], KEYS[4], time[1] * 1000 + math.floor(time[2] / 1000)))
return found
