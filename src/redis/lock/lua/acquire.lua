-- Grants all locks of one call to one owner, or none. Idempotent for the same hold.
-- KEYS  for each lock: lock, fence, holds, queue, queue expiry
-- ARGV  owner, id of the hold, lease in ms, retention of a fence in ms, retention of a queue slot in ms (0: no queue)
-- Returns { 1, fence of each lock } or { 0, index of the first busy lock, ms after which it may be free or -1 }
local fifo
--@make fifo queue.lua
local owner, id, leaseMs, fenceMs, slotMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local isFair = slotMs > 0
local fences, queues, expiries = {}, {}, {}
local busy, busyMs

for i = 1, #KEYS, 5 do
  local lock, queue, expiry = KEYS[i], KEYS[i + 3], KEYS[i + 4]
  local number = #queues + 1
  queues[number], expiries[number] = queue, expiry
  local value = redis.call('GET', lock)
  local fence, holder = string.match(value or '', '^(%d+):(.*)$')
  if holder == owner then
    fences[number] = tonumber(fence)
  elseif value then
    if not busy then busy, busyMs = number, redis.call('PTTL', lock) end
  elseif isFair and not busy then
    local first = fifo.head(queue, expiry, nowMs)
    if first and first ~= id then busy, busyMs = number, fifo.headExpiresInMs(queue, expiry, nowMs) end
  end
end

if busy then
  if isFair then fifo.join(queues, expiries, id, nowMs, slotMs) end
  return { 0, busy, busyMs }
end

-- The fence increases with every holder. It is derived from the time, so it also exceeds a fence that has expired.
local fence = time[1] * 1000000 + time[2]
for i = 1, #KEYS, 5 do
  fence = math.max(fence, (tonumber(redis.call('GET', KEYS[i + 1])) or 0) + 1)
end

for number = 1, #queues do
  local i = number * 5 - 4
  local lock, holds = KEYS[i], KEYS[i + 2]
  local ttl = leaseMs
  if fences[number] then
    ttl = math.max(leaseMs, redis.call('PTTL', lock))
    redis.call('PEXPIRE', lock, ttl)
  else
    fences[number] = fence
    local text = string.format('%.0f', fence)
    redis.call('SET', lock, text .. ':' .. owner, 'NX', 'PX', leaseMs)
    redis.call('SET', KEYS[i + 1], text, 'PX', fenceMs)
    redis.call('DEL', holds)
  end
  redis.call('HSET', holds, id, 1)
  redis.call('PEXPIRE', holds, ttl)
  if isFair then fifo.leave(queues[number], expiries[number], id) end
end
return { 1, unpack(fences) }
