-- Decides in one call: reads every bucket, steps every band, writes all of a decision or nothing. Decisions follow each
-- other in the order given, each on what those before it have left behind.
--
-- KEYS     the buckets of all decisions, each once: first those that are a few numbers, then logs
-- ARGV[1]  doubles, little endian:
--            now (ticks; below 0: the server's own time), how many keys are not logs, bands, decisions
--            per band: kind, capacity, tokens, window
--            per decision: what (below), demands
--              per demand: permits, patience, whether it is a shadow (LEASE: permits wanted at most), bands
--                per band: key, band, an instant (REFUND: when granted, below 0: now; SETTLE: when the lease ends)
-- Result   now; then per decision: 1 granted or done, 0 refused, or text: why this one could not be decided;
--            CHARGE, PEEK, LEASE: per band retryAfter (0 allowed, -1 never), delay, remaining, resetAt;
--            CHARGE that is refused: per band how many numbers its state is (-1: not told), and these numbers;
--            LEASE that is granted: how many permits, and until when they may be spent
--
-- The whole text runs for every call, so functions are made only where they are needed.
local CHARGE, PEEK, REFUND, LEASE = 0, 1, 2, 3
local call, pack, unpackNumbers = redis.call, struct.pack, struct.unpack
local floor, ceil, never = math.floor, math.ceil, math.huge
local noBucket = 'holds something that is not a bucket'

--@include ../algorithms/exact.lua
--@include ../algorithms/answer.lua

-- By kind.
local twins = {}
--@twin ../algorithms/level.lua ../algorithms/token-bucket.lua
--@twin ../algorithms/interval-bucket.lua
--@twin ../algorithms/level.lua ../algorithms/leaky-bucket.lua
--@twin ../algorithms/window.lua ../algorithms/fixed-window.lua
--@twin log-pages.lua ../algorithms/sliding-window-log.lua
--@twin ../algorithms/window.lua ../algorithms/sliding-window-counter.lua

-- Permits that processes hold in advance; made once a bucket has some.
local function openHeld()
  --@include held.lua
end

-- Read

local input = ARGV[1]
-- Lua takes some thousands of values from a function at once.
local most = 4000
local numbers = { unpackNumbers('<' .. string.rep('d', math.min(most, #input / 8)), input) }
for from = most, #input / 8 - 1 do numbers[from + 1] = unpackNumbers('<d', input, from * 8 + 1) end
local now, cellKeys, bandCount, decisionCount = numbers[1], numbers[2], numbers[3], numbers[4]
local place = 4
-- A clock that is given is not the server's, so what the server forgets by its own must outlast it.
local isForeignClock = now >= 0
if not isForeignClock then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local algorithms, bands = {}, {}
for i = 1, bandCount do
  local kind = numbers[place + 1]
  algorithms[kind] = algorithms[kind] or twins[kind]()
  bands[i] = {
    kind = kind,
    capacity = numbers[place + 2],
    tokens = numbers[place + 3],
    window = numbers[place + 4],
    algorithm = algorithms[kind],
    step = algorithms[kind].step,
  }
  place = place + 4
end

local values = cellKeys > 0 and call('MGET', unpack(KEYS, 1, cellKeys))

-- By key: the kind of bucket that is there (0 for none), its numbers (or its log), what is held of it, whether it is to
-- be written, and by which band.
local kinds, firsts, seconds, thirds, fourths = {}, {}, {}, {}, {}
local lotsOf, changed, changedKeys, changes = {}, {}, {}, 0
local held

-- Reads a bucket once; the result says what is wrong with it, if anything is.
local function open(key, band)
  if kinds[key] then return kinds[key] == noBucket and noBucket or nil end
  if band.algorithm.open then
    kinds[key], firsts[key] = band.algorithm.open(KEYS[key])
  else
    local value = values[key]
    if not value then kinds[key] = 0
    elseif #value == 33 then
      kinds[key], firsts[key], seconds[key], thirds[key], fourths[key] = unpackNumbers('<Bdddd', value)
    elseif #value == 65 then
      local lots = {}
      kinds[key], firsts[key], seconds[key], thirds[key], fourths[key],
        lots.earlier, lots.heldEarlier, lots.later, lots.heldLater = unpackNumbers('<Bdddddddd', value)
      lotsOf[key] = lots
      held = held or openHeld()
    else
      local kind = string.byte(value)
      kinds[key] = kind ~= band.kind and twins[kind] and kind or noBucket
    end
  end
  if kinds[key] == noBucket then return noBucket end
  -- What another algorithm has left behind means nothing to this one.
  if kinds[key] ~= band.kind then firsts[key] = nil end
end

local function commit(key, band, first, second, third, fourth, fifth)
  if not changed[key] then
    changes = changes + 1
    changedKeys[changes] = key
  end
  changed[key] = band
  kinds[key] = band.kind
  if band.algorithm.apply then
    firsts[key] = band.algorithm.apply(firsts[key], first, second, third, fourth, fifth)
    return
  end
  firsts[key], seconds[key], thirds[key], fourths[key] = first, second, third, fourth
end

-- Decide

local results, length = { now }, 1

-- Redis cuts numbers to integers; one with a fraction goes as text.
local function exactly(number)
  if number == never then return -1 end
  return number % 1 == 0 and number or string.format('%.17g', number)
end

local others
local function openOthers()
  --@include consume-many.lua
end

for _ = 1, decisionCount do
  local what, demands = numbers[place + 1], numbers[place + 2]
  local permits, patience, shadow, bandsHere = numbers[place + 3], numbers[place + 4], numbers[place + 5], numbers[place + 6]
  local key, band = numbers[place + 7], bands[numbers[place + 8]]
  if what == CHARGE and demands == 1 and bandsHere == 1 and shadow == 0 and not open(key, band) and not lotsOf[key] then
    -- Most decisions: one band speaks for all.
    place = place + 9
    local retryAfter, delay, remaining, resetAt, writes, first, second, third, fourth, fifth =
      band.step(band, permits, now, patience, firsts[key], seconds[key], thirds[key], fourths[key])
    if retryAfter == 0 then
      if writes then commit(key, band, first, second, third, fourth, fifth) end
      results[length + 1], results[length + 2] = 1, 0
      results[length + 3] = delay == 0 and 0 or exactly(delay)
      results[length + 4], results[length + 5] = remaining, resetAt
      length = length + 5
    else
      results[length + 1], results[length + 2] = 0, exactly(retryAfter)
      results[length + 3], results[length + 4], results[length + 5] = 0, remaining, resetAt
      length = length + 5
      -- What it looks like, so that the caller need not ask again to know that it still refuses.
      if band.algorithm.open then results[length + 1] = -1
      elseif firsts[key] == nil then results[length + 1] = 0
      else
        results[length + 1], results[length + 2], results[length + 3] = 4, firsts[key], seconds[key]
        results[length + 4], results[length + 5] = thirds[key], fourths[key]
        length = length + 4
      end
      length = length + 1
      -- Time has stepped back, and the bucket moves along.
      if writes then commit(key, band, first, second, third, fourth, fifth) end
    end
  else
    others = others or openOthers()
    others(what, demands)
  end
end

-- Write

for i = 1, changes do
  local key = changedKeys[i]
  local band, name, lots = changed[key], KEYS[key], lotsOf[key]
  local first, second, third, fourth = firsts[key], seconds[key], thirds[key], fourths[key]
  local expiresAt = band.algorithm.expiresAt(band, first, second, third, fourth)
  if lots then expiresAt = math.max(expiresAt, held.roomAgainAt(lots, band)) end
  if expiresAt <= now then call('DEL', name)
  else
    -- As text, because Redis writes numbers of its own with all digits that a double may have, which takes longer.
    local mode, ttl = 'PXAT', string.format('%d', ceil(expiresAt / 1000))
    if isForeignClock then mode, ttl = 'PX', string.format('%d', ceil((expiresAt - now) / 1000) + 86400000) end
    if band.algorithm.write then band.algorithm.write(first, name, mode, ttl)
    elseif lots and lots.heldEarlier + lots.heldLater > 0 then
      call('SET', name, pack('<Bdddddddd', band.kind, first, second, third, fourth,
        lots.earlier, lots.heldEarlier, lots.later, lots.heldLater), mode, ttl)
    else call('SET', name, pack('<Bdddd', band.kind, first, second, third, fourth), mode, ttl) end
  end
end

return results
