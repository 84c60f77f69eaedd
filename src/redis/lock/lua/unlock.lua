-- Releases a lock regardless of its owner. The holder notices with its next call.
-- KEYS  lock, holds, queue, queue expiry
-- ARGV  channel
-- Returns 1, or 0 if the lock was free
local fifo
--@make fifo queue.lua
local time = redis.call('TIME')
local found = redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[2])
fifo.announce(ARGV[1], fifo.head(KEYS[3], KEYS[4], time[1] * 1000 + math.floor(time[2] / 1000)))
return found
