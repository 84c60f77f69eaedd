/** Generated from acquire.lua, extend.lua, release.lua, unlock.lua, semaphore/acquire.lua, semaphore/extend.lua, semaphore/release.lua by scripts/assemble-lua.mjs; do not edit. */
export const acquireScript = {
  sha: '1d74551a6ad77e1ef53b86c19dbb72cf66dbecae',
  source: `local fifo
fifo = (function()
local fifo = {}
local function evictExpired(queue, expiry, nowMs)
local dead = redis.call('ZRANGEBYSCORE', expiry, '-inf', nowMs, 'LIMIT', 0, 100)
if #dead > 0 then
redis.call('ZREM', queue, unpack(dead))
redis.call('ZREM', expiry, unpack(dead))
end
end
function fifo.head(queue, expiry, nowMs)
evictExpired(queue, expiry, nowMs)
return redis.call('ZRANGE', queue, 0, 0)[1]
end
function fifo.headExpiresInMs(queue, expiry, nowMs)
local first = redis.call('ZRANGE', queue, 0, 0)[1]
return (tonumber(first and redis.call('ZSCORE', expiry, first)) or nowMs) - nowMs
end
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
function fifo.announce(channel, first)
redis.pcall('PUBLISH', channel, first or '')
end
return fifo
end)()
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
return { 1, unpack(fences) }`,
}

export const extendScript = {
  sha: '3b73788947260c6333a4b58b330ccb7333cc8fd7',
  source: `local owner, id, leaseMs, fenceMs, floor = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
for i = 1, #KEYS, 3 do
local value = redis.call('GET', KEYS[i])
if not value or string.match(value, '^%d+:(.*)$') ~= owner then return 0 end
if redis.call('HEXISTS', KEYS[i + 2], id) == 0 then return 0 end
end
for i = 1, #KEYS, 3 do
local ttl = math.max(leaseMs, redis.call('PTTL', KEYS[i]))
redis.call('PEXPIRE', KEYS[i], ttl)
redis.call('PEXPIRE', KEYS[i + 2], ttl)
if floor > (tonumber(redis.call('GET', KEYS[i + 1])) or 0) then
redis.call('SET', KEYS[i + 1], string.format('%.0f', floor), 'PX', fenceMs)
end
end
return 1`,
}

export const releaseScript = {
  sha: 'b249e61542dd2ea74ec3a83bbd16196a4d748e04',
  source: `local fifo
fifo = (function()
local fifo = {}
local function evictExpired(queue, expiry, nowMs)
local dead = redis.call('ZRANGEBYSCORE', expiry, '-inf', nowMs, 'LIMIT', 0, 100)
if #dead > 0 then
redis.call('ZREM', queue, unpack(dead))
redis.call('ZREM', expiry, unpack(dead))
end
end
function fifo.head(queue, expiry, nowMs)
evictExpired(queue, expiry, nowMs)
return redis.call('ZRANGE', queue, 0, 0)[1]
end
function fifo.headExpiresInMs(queue, expiry, nowMs)
local first = redis.call('ZRANGE', queue, 0, 0)[1]
return (tonumber(first and redis.call('ZSCORE', expiry, first)) or nowMs) - nowMs
end
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
function fifo.announce(channel, first)
redis.pcall('PUBLISH', channel, first or '')
end
return fifo
end)()
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
return released`,
}

export const unlockScript = {
  sha: '4e8c1bb6b3b6899bbf72063ebb4fa5f82d7b3876',
  source: `local fifo
fifo = (function()
local fifo = {}
local function evictExpired(queue, expiry, nowMs)
local dead = redis.call('ZRANGEBYSCORE', expiry, '-inf', nowMs, 'LIMIT', 0, 100)
if #dead > 0 then
redis.call('ZREM', queue, unpack(dead))
redis.call('ZREM', expiry, unpack(dead))
end
end
function fifo.head(queue, expiry, nowMs)
evictExpired(queue, expiry, nowMs)
return redis.call('ZRANGE', queue, 0, 0)[1]
end
function fifo.headExpiresInMs(queue, expiry, nowMs)
local first = redis.call('ZRANGE', queue, 0, 0)[1]
return (tonumber(first and redis.call('ZSCORE', expiry, first)) or nowMs) - nowMs
end
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
function fifo.announce(channel, first)
redis.pcall('PUBLISH', channel, first or '')
end
return fifo
end)()
local time = redis.call('TIME')
local found = redis.call('DEL', KEYS[1])
redis.call('DEL', KEYS[2])
fifo.announce(ARGV[1], fifo.head(KEYS[3], KEYS[4], time[1] * 1000 + math.floor(time[2] / 1000)))
return found`,
}

export const semaphoreAcquireScript = {
  sha: '8cff132cd82e59e12ef2758015440a87df0ee7cb',
  source: `local fifo
fifo = (function()
local fifo = {}
local function evictExpired(queue, expiry, nowMs)
local dead = redis.call('ZRANGEBYSCORE', expiry, '-inf', nowMs, 'LIMIT', 0, 100)
if #dead > 0 then
redis.call('ZREM', queue, unpack(dead))
redis.call('ZREM', expiry, unpack(dead))
end
end
function fifo.head(queue, expiry, nowMs)
evictExpired(queue, expiry, nowMs)
return redis.call('ZRANGE', queue, 0, 0)[1]
end
function fifo.headExpiresInMs(queue, expiry, nowMs)
local first = redis.call('ZRANGE', queue, 0, 0)[1]
return (tonumber(first and redis.call('ZSCORE', expiry, first)) or nowMs) - nowMs
end
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
function fifo.announce(channel, first)
redis.pcall('PUBLISH', channel, first or '')
end
return fifo
end)()
local id, leaseMs, fenceMs, slotMs, limit = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local permits, queue, expiry = KEYS[1], KEYS[3], KEYS[4]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local isFair = slotMs > 0
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
return { 1, fence }`,
}

export const semaphoreExtendScript = {
  sha: 'b6c52253954516988a4d06bcf86e47b338865e61',
  source: `local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local endsAt = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
if endsAt <= nowMs then return 0 end
redis.call('ZADD', KEYS[1], math.max(endsAt, nowMs + ARGV[2]), ARGV[1])
redis.call('PEXPIREAT', KEYS[1], redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2])
return 1`,
}

export const semaphoreReleaseScript = {
  sha: 'e00bdb5e1fc879eca3b16abe6ac76f790b1f27e6',
  source: `local fifo
fifo = (function()
local fifo = {}
local function evictExpired(queue, expiry, nowMs)
local dead = redis.call('ZRANGEBYSCORE', expiry, '-inf', nowMs, 'LIMIT', 0, 100)
if #dead > 0 then
redis.call('ZREM', queue, unpack(dead))
redis.call('ZREM', expiry, unpack(dead))
end
end
function fifo.head(queue, expiry, nowMs)
evictExpired(queue, expiry, nowMs)
return redis.call('ZRANGE', queue, 0, 0)[1]
end
function fifo.headExpiresInMs(queue, expiry, nowMs)
local first = redis.call('ZRANGE', queue, 0, 0)[1]
return (tonumber(first and redis.call('ZSCORE', expiry, first)) or nowMs) - nowMs
end
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
function fifo.announce(channel, first)
redis.pcall('PUBLISH', channel, first or '')
end
return fifo
end)()
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local endsAt = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or 0)
redis.call('ZREM', KEYS[1], ARGV[1])
fifo.leave(KEYS[2], KEYS[3], ARGV[1])
fifo.announce(ARGV[2], fifo.head(KEYS[2], KEYS[3], nowMs))
return endsAt > nowMs and 1 or 0`,
}
