-- Releases the permit and the queue slot of one hold.
-- KEYS  permits, queue, queue expiry
-- ARGV  id of the hold, channel
-- Returns 1, or 0 if the permit had already expired
local fifo
--@make fifo ../queue.lua
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local endsAt = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
redis.call('ZREM', KEYS[1], ARGV[1])
fifo.leave(KEYS[2], KEYS[3], ARGV[1])
fifo.announce(ARGV[2], fifo.head(KEYS[2], KEYS[3], nowMs))
return endsAt > nowMs and 1 or 0
