-- Releases one hold and its queue slots. A lock stays held while another hold of the same owner uses it.
-- KEYS  for each lock: lock, holds, queue, places
-- ARGV  owner, id of the hold, channel of each lock
-- Returns the number of locks that the hold held
local line
--@make line line.lua
local owner, id = ARGV[1], ARGV[2]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local ended = 0
for i = 1, #KEYS, 4 do
  local lock, holds, queue, alive = KEYS[i], KEYS[i + 1], KEYS[i + 2], KEYS[i + 3]
  local hasLine = redis.call('EXISTS', queue) == 1
  if hasLine then line.leave(queue, alive, id) end
  local value = redis.call('GET', lock)
  local isOurs = value and string.match(value, '^%d+:(.*)$') == owner
  if isOurs and redis.call('HDEL', holds, id) == 1 then
    ended = ended + 1
    if redis.call('HLEN', holds) == 0 then
      redis.call('DEL', lock)
      value = false
    end
  end
  if not value then line.call(ARGV[(i + 3) / 4 + 2], hasLine and line.first(queue, alive, nowMs)) end
end
return ended
