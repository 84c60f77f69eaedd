-- Decides in one call: reads every bucket, steps every band, writes all of a decision or nothing. Decisions follow each
-- other in the order given, each on what those before it have left behind.
--
-- KEYS     the buckets of all decisions, each once: first those that are a few numbers, then logs; then per lookup the hash of the override
-- ARGV[1]  doubles, little endian:
--            now (ticks; below 0: the server's own time), how many keys are not logs, bands, decisions
--            per band: kind, capacity, tokens, window
--            per decision: what (below), whether no other decision names any of its keys, and none is a log;
--              PLAIN, a charge without shadows: bands
--                per band: permits, patience, key, band
--              else (RESET forgets the buckets): demands
--                per demand: permits, patience, whether it is a shadow (LEASE: permits wanted at most), bands
--                  per band: key, band, an instant (REFUND: when granted, below 0: now; SETTLE: when the lease ends)
-- ARGV[2…] of rules with overrides alone: what to look up, described in overrides.lua
-- Result   doubles as above; or if some decisions could not be made, a list of these and, in order, why not:
--            now; then per decision: 1 granted or done, 0 refused, or 2 could not be made, and nothing follows;
--            PLAIN, CHARGE, PEEK, LEASE: per band retryAfter (0 allowed, -1 never), delay, remaining, resetAt;
--            PLAIN, CHARGE that are refused: per band, from the last to the first, how many numbers its state is
--            (-1: not told), and four numbers; of a log, the tick until which it stays as it is, and three more;
--            LEASE that is granted: how many permits, and until when they may be spent;
--          if overrides were found, a list of all that, whose last item is a list of these; or STALE, and nothing was done
--
-- The whole text runs for every call, so that functions are made where they are needed, and not before.
local PLAIN, CHARGE, PEEK, REFUND, LEASE, RESET = 0, 1, 2, 3, 4, 6
local call, pack, unpackNumbers = redis.call, struct.pack, struct.unpack
local floor, ceil, never, format = math.floor, math.ceil, math.huge, string.format
local kindsOfBuckets, noBucket = 6, 'holds something that is not a bucket'

-- Read

local input = ARGV[1]
-- Lua takes some thousands of values from a function at once.
local most = 4000
local numbers = { unpackNumbers('<' .. string.rep('d', math.min(most, #input / 8)), input) }
for from = most, #input / 8 - 1 do numbers[from + 1] = unpackNumbers('<d', input, from * 8 + 1) end
local now, cellKeys, bandCount, decisionCount = numbers[1], numbers[2], numbers[3], numbers[4]
local place = 4
-- A clock that is given is not the server's, so what the server forgets by its own must outlast it.
local isForeignClock, foreignTtl = now >= 0, 86400000
if not isForeignClock then
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local bands, algorithms = {}, {}
for i = 1, bandCount do
  local kind = numbers[place + 1]
  local algorithm = algorithms[kind]
  if not algorithm then
    --@twins kind algorithm
    --@twin ../algorithms/exact.lua ../algorithms/answer.lua ../algorithms/level.lua ../algorithms/token-bucket.lua
    --@twin ../algorithms/answer.lua ../algorithms/interval-bucket.lua
    --@twin ../algorithms/exact.lua ../algorithms/level.lua ../algorithms/leaky-bucket.lua
    --@twin ../algorithms/answer.lua ../algorithms/window.lua ../algorithms/fixed-window.lua
    --@twin ../algorithms/answer.lua log-pages.lua ../algorithms/sliding-window-log.lua
    --@twin ../algorithms/exact.lua ../algorithms/answer.lua ../algorithms/window.lua ../algorithms/sliding-window-counter.lua
    algorithms[kind] = algorithm
  end
  bands[i] = {
    kind = kind,
    capacity = numbers[place + 2],
    tokens = numbers[place + 3],
    window = numbers[place + 4],
    algorithm = algorithm,
    step = algorithm.step,
    endsAtReset = algorithm.endsAtReset,
  }
  place = place + 4
end

local values = cellKeys > 0 and call('MGET', unpack(KEYS, 1, cellKeys))

-- Of rules with overrides: those that were found, and what became of them.
local applied
if ARGV[2] then
  local lookups = (#ARGV[2] - 8) / 32
  local hashes, found = #KEYS - lookups, nil
  for i = 1, lookups do
    local value, expected = call('HGET', KEYS[hashes + i], ARGV[4 * i - 1]), ARGV[4 * i + 2]
    if expected ~= '' then
      -- The caller has asked for the buckets of another override, so that there is nothing to decide about.
      if value ~= expected then return 'STALE' end
    elseif value or ARGV[4 * i + 1] ~= '' then
      found = found or {}
      found[i] = value
    end
  end
  if found then
    --@make applied overrides.lua
  end
end

-- `resetAt` is what its step has said, or nil.
local function writeCells(name, band, resetAt, first, second, third, fourth)
  local expiresAt = band.endsAtReset and resetAt or band.algorithm.expiresAt(band, first, second, third, fourth)
  if expiresAt <= now then return call('DEL', name) end
  local value = pack('<Bdddd', band.kind, first, second, third, fourth)
  -- As text, because Redis itself would write a number with all the digits that a double may have, which takes longer.
  if not isForeignClock then return call('SET', name, value, 'PXAT', format('%d', ceil(expiresAt / 1000))) end
  call('SET', name, value, 'PX', format('%d', ceil((expiresAt - now) / 1000) + foreignTtl))
end

-- Decide

local results, length = { now }, 1

-- Steps the last `left` bands of a decision. Each asks those after it before it writes or tells, so that all of them know
-- what becomes of the whole; the result. `saidBefore` is what the bands before it say.
local function charge(left, saidBefore)
  local permits, patience = numbers[place + 1], numbers[place + 2]
  local key, band = numbers[place + 3], bands[numbers[place + 4]]
  local kind, first, second, third, fourth
  local value = values[key]
  if value then kind, first, second, third, fourth = unpackNumbers('<Bdddd', value) end
  -- What another algorithm has left behind means nothing to this one.
  if kind ~= band.kind then first = nil end
  local retryAfter, delay, remaining, resetAt, writes, one, two, three, four =
    band.step(band, permits, now, patience, first, second, third, fourth)
  place = place + 4
  length = length + 4
  local told = length
  local granted = saidBefore and retryAfter == 0
  if left > 1 then granted = charge(left - 1, granted) end
  if not granted and retryAfter == 0 then
    -- It would have allowed, and is told as it stands.
    local _
    _, delay, remaining, resetAt, writes, one, two, three, four =
      band.step(band, 0, now, 0, first, second, third, fourth)
  end
  -- A refusal writes only if time has stepped back: then the bucket moves along.
  if writes then
    first, second, third, fourth = one, two, three, four
    writeCells(KEYS[key], band, resetAt, first, second, third, fourth)
  end
  if not granted then
    -- What it looks like, so that the caller need not ask again to know that it still refuses.
    results[length + 1], results[length + 2], results[length + 3] = first and 4 or 0, first or 0, second or 0
    results[length + 4], results[length + 5] = third or 0, fourth or 0
    length = length + 5
  end
  results[told - 3], results[told - 2] = retryAfter == never and -1 or retryAfter, delay
  results[told - 1], results[told] = remaining, resetAt
  return granted
end

-- For decisions that are not PLAIN, or about buckets that are not.
local others

for _ = 1, decisionCount do
  local what, count = numbers[place + 1], numbers[place + 3]
  local isPlain, granted = what == PLAIN and numbers[place + 2] == 1, false
  if isPlain and count == 1 then
    -- One band that allows is what is asked for most often: as `charge`, without the calls, which take longer than the rest.
    local key, band = numbers[place + 6], bands[numbers[place + 7]]
    local value = values[key]
    local kind, first, second, third, fourth
    isPlain = not value or #value == 33
    if isPlain and value then kind, first, second, third, fourth = unpackNumbers('<Bdddd', value) end
    if kind ~= band.kind then first = nil end
    local retryAfter, delay, remaining, resetAt, _, one, two, three, four =
      band.step(band, numbers[place + 4], now, numbers[place + 5], first, second, third, fourth)
    granted = isPlain and retryAfter == 0
    if granted then
      writeCells(KEYS[key], band, resetAt, one, two, three, four)
      results[length + 1], results[length + 2], results[length + 3] = 1, 0, delay
      results[length + 4], results[length + 5] = remaining, resetAt
    end
  elseif isPlain then
    for i = place + 6, place + 2 + 4 * count, 4 do
      local value = values[numbers[i]]
      isPlain = isPlain and (not value or #value == 33)
    end
  end
  if granted then place, length = place + 7, length + 5
  elseif isPlain then
    place = place + 3
    length = length + 1
    local said = length
    results[said] = (count == 0 or charge(count, true)) and 1 or 0
  else
    if not others then
      --@make others consume-many.lua
    end
    others.decide(what)
  end
end

if others then others.writeAll() end

-- As bytes: a list of numbers takes a client longer to read than all the rest of its work, and cuts them to integers.
local packed = pack('<' .. string.rep('d', math.min(most, length)), unpack(results, 1, math.min(most, length)))
for from = most + 1, length do packed = packed .. pack('<d', results[from]) end
if not applied then
  if others and others.problems[1] then return { packed, unpack(others.problems) } end
  return packed
end
local reply = { packed }
for _, problem in ipairs(others and others.problems or {}) do reply[#reply + 1] = problem end
reply[#reply + 1] = applied
return reply
