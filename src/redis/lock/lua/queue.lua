-- The first-come, first-served queue of one lock or semaphore. The slot of a caller that has died expires.
-- The members of both sorted sets are ids of holds. Scores: tickets in `queue`, expiry times of the slots in ms in `expiry`.
local fifo = {}

local function evictExpired(queue, expiry, nowMs)
  local dead = redis.call('ZRANGEBYSCORE', expiry, '-inf', nowMs, 'LIMIT', 0, 100)
  if #dead > 0 then
    redis.call('ZREM', queue, unpack(dead))
    redis.call('ZREM', expiry, unpack(dead))
  end
end

-- Returns the id at the head of the queue, or nil.
function fifo.head(queue, expiry, nowMs)
  evictExpired(queue, expiry, nowMs)
  return redis.call('ZRANGE', queue, 0, 0)[1]
end

-- Returns the ms until the slot at the head expires. A repeated request of its hold renews it.
function fifo.headExpiresInMs(queue, expiry, nowMs)
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  return (tonumber(first and redis.call('ZSCORE', expiry, first)) or nowMs) - nowMs
end

-- Renews the slot of the id, or appends one. All queues get the same ticket, so that two holds that request the same locks
-- have the same order in every queue. An id that has lost one slot is appended to all queues again.
function fifo.join(queues, expiries, id, nowMs, slotMs)
  local ticket, isComplete = nowMs, true
  for i, queue in ipairs(queues) do
    local last = redis.call('ZREVRANGE', queue, 0, 0, 'WITHSCORES')[2]
    if last then ticket = math.max(ticket, tonumber(last) + 1) end
    if not redis.call('ZSCORE', queue, id) then isComplete = false end
  end
  for i, queue in ipairs(queues) do
    if not isComplete then redis.call('ZADD', queue, ticket, id) end
    redis.call('ZADD', expiries[i], nowMs + slotMs, id)
    redis.call('PEXPIRE', queue, 2 * slotMs)
    redis.call('PEXPIRE', expiries[i], 2 * slotMs)
  end
end

function fifo.leave(queue, expiry, id)
  redis.call('ZREM', queue, id)
  redis.call('ZREM', expiry, id)
end

-- Announces the id at the head, or an empty message if any caller may try. Without the permission to publish, callers poll.
function fifo.announce(channel, first)
  redis.pcall('PUBLISH', channel, first or '')
end

return fifo
