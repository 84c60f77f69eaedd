-- Grants one permit to a hold. A repeated request of the same hold extends its permit.
-- KEYS  permits (ids of holds scored by expiry time in ms), fence, queue, queue expiry
-- ARGV  id of the hold, lease in ms, retention of a fence in ms, retention of a queue slot in ms (0: no queue), number of permits
-- Returns { 1, fence } or { 0, 1, ms after which a permit may be free }
local fifo
--@make fifo ../queue.lua
local id, leaseMs, fenceMs, slotMs, limit = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local permits, queue, expiry = KEYS[1], KEYS[3], KEYS[4]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local isFair = slotMs > 0

-- Only the clock of the server is used, so that a client with a wrong clock cannot change the length of any lease.
redis.call('ZREMRANGEBYSCORE', permits, '-inf', nowMs)
if not redis.call('ZSCORE', permits, id) then
  local busyMs
  if redis.call('ZCARD', permits) >= limit then
    busyMs = redis.call('ZRANGE', permits, 0, 0, 'WITHSCORES')[2] - nowMs
  elseif isFair then
    local first = fifo.head(queue, expiry, nowMs)
    if first and first ~= id then busyMs = fifo.headExpiresInMs(queue, expiry, nowMs) end
  end
  if busyMs then
    if isFair then fifo.join({ queue }, { expiry }, id, nowMs, slotMs) end
    return { 0, 1, busyMs }
  end
end

local fence = math.max(time[1] * 1000000 + time[2], (tonumber(redis.call('GET', KEYS[2])) or 0) + 1)
redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX', fenceMs)
redis.call('ZADD', permits, nowMs + leaseMs, id)
redis.call('PEXPIREAT', permits, redis.call('ZREVRANGE', permits, 0, 0, 'WITHSCORES')[2])
if isFair then fifo.leave(queue, expiry, id) end
return { 1, fence }
