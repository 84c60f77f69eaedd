-- Those who wait for one thing in the order of asking. Whoever dies in the line leaves it when its place expires.
-- `queue` has tickets as scores, `alive` the milliseconds at which places expire; members are ids of holds.
local line = {}

local function tidy(queue, alive, nowMs)
  local dead = redis.call('ZRANGEBYSCORE', alive, '-inf', nowMs, 'LIMIT', 0, 100)
  if #dead > 0 then
    redis.call('ZREM', queue, unpack(dead))
    redis.call('ZREM', alive, unpack(dead))
  end
end

-- The id whose turn it is, or nil.
function line.first(queue, alive, nowMs)
  tidy(queue, alive, nowMs)
  return redis.call('ZRANGE', queue, 0, 0)[1]
end

-- When the first place expires, unless its owner asks again before that.
function line.firstEndsInMs(queue, alive, nowMs)
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  return (tonumber(first and redis.call('ZSCORE', alive, first)) or nowMs) - nowMs
end

-- Keeps the place, or takes the last one. All lines are entered with the same ticket: two who want the same things stand
-- in the same order everywhere. One who has lost a place somewhere starts again in all of them.
function line.enter(queues, alives, id, nowMs, placeMs)
  local ticket, isComplete = nowMs, true
  for i, queue in ipairs(queues) do
    local last = redis.call('ZREVRANGE', queue, 0, 0, 'WITHSCORES')[2]
    if last then ticket = math.max(ticket, tonumber(last) + 1) end
    if not redis.call('ZSCORE', queue, id) then isComplete = false end
  end
  for i, queue in ipairs(queues) do
    if not isComplete then redis.call('ZADD', queue, ticket, id) end
    redis.call('ZADD', alives[i], nowMs + placeMs, id)
    redis.call('PEXPIRE', queue, 2 * placeMs)
    redis.call('PEXPIRE', alives[i], 2 * placeMs)
  end
end

function line.leave(queue, alive, id)
  redis.call('ZREM', queue, id)
  redis.call('ZREM', alive, id)
end

-- Tells those who wait: whose turn it is, or that anybody may try. Who may not publish lets them find out by themselves.
function line.call(channel, first)
  redis.pcall('PUBLISH', channel, first or '')
end

return line
