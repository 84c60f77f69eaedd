-- Releases one hold and its queue slots. A lock stays held while another hold of the same owner uses it.
-- KEYS  for each lock: lock, holds, queue, queue expiry
-- ARGV  owner, id of the hold, channel of each lock
-- Returns the number of locks that the hold held
local fifo
--@make fifo queue.lua
local owner, id = ARGV[1], ARGV[2]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local released = 0
for i = 1, #KEYS, 4 do
  local lock, holds, queue, expiry = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  local hasQueue = redis.call('EXISTS', queue) == 1
  if hasQueue then fifo.leave(queue, expiry, id) end
  local value = redis.call('GET', lock)
  local isOwned = value and string.match(value, '^%d+:(.*)$') == owner
  if isOwned and redis.call('HDEL', holds, id) == 1 then
    released = released + 1
    if redis.call('HLEN', holds) == 0 then
      redis.call('DEL', lock)
      value = false
    end
  end
  if not value then fifo.announce(ARGV[(i + 3) / 4 + 2], hasQueue and fifo.head(queue, expiry, nowMs)) end
end
return released
