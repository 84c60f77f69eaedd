-- Charges whose buckets are logs, are used several times in the batch or have leased permits; and all other operations.

local BACKDATE = 8

-- Leased permits; created only if a bucket has some.
local held
local function loadHeld()
  if not held then
    --@make held held.lua
  end
  return held
end

-- By key: the kind of the bucket (0 if unused), its numbers (or its log), its leased lots, and the band that writes it if it
-- has changed.
local kinds, firsts, seconds, thirds, fourths = {}, {}, {}, {}, {}
local lotsOf, changed, changedKeys = {}, {}, {}

-- Loads a bucket once. Returns a problem if the value is not a bucket.
local function openBucket(key, band)
  if not kinds[key] then
    local value = values and values[key]
    if band.algorithm.open then kinds[key], firsts[key] = band.algorithm.open(KEYS[key])
    elseif not value then kinds[key] = 0
    elseif #value == 33 then
      kinds[key], firsts[key], seconds[key], thirds[key], fourths[key] = unpackNumbers('<Bdddd', value)
    elseif #value == 65 then
      local lots = {}
      kinds[key], firsts[key], seconds[key], thirds[key], fourths[key],
        lots.earlier, lots.heldEarlier, lots.later, lots.heldLater = unpackNumbers('<Bdddddddd', value)
      lotsOf[key] = lots
      loadHeld()
    else
      local kind = string.byte(value)
      kinds[key] = kind and kind ~= band.kind and kind <= kindCount and kind or notABucket
    end
  end
  if kinds[key] == notABucket then return notABucket end
  -- A bucket of another algorithm counts as unused.
  if kinds[key] ~= band.kind then firsts[key], lotsOf[key] = nil, nil end
  local lots = lotsOf[key]
  if lots then
    firsts[key], seconds[key], thirds[key], fourths[key] =
      held.dropEnded(lots, band, now, firsts[key], seconds[key], thirds[key], fourths[key])
    if held.heldIn(lots) == 0 then lotsOf[key] = nil end
  end
end

local function willWrite(key, band)
  if not changed[key] then changedKeys[#changedKeys + 1] = key end
  changed[key] = band
end

local function commit(key, band, first, second, third, fourth, fifth)
  willWrite(key, band)
  kinds[key] = band.kind
  if band.algorithm.apply then
    firsts[key] = band.algorithm.apply(firsts[key], first, second, third, fourth, fifth)
  else
    firsts[key], seconds[key], thirds[key], fourths[key] = first, second, third, fourth
  end
end

-- The bands and items of the current operation, and the results of its bands. The tables are reused by the next operation.
local keys, bandsOf, permitsOf, maxWaitsOf, instants = {}, {}, {}, {}, {}
local oldFirsts, oldSeconds, oldThirds, oldFourths, movedFrom = {}, {}, {}, {}, {}
local isExclusive
local shadows, ends, allowing = {}, {}, {}
local retries, delays, remainders, resets, writes = {}, {}, {}, {}, {}
local nextFirsts, nextSeconds, nextThirds, nextFourths, nextFifths = {}, {}, {}, {}, {}

local function emit(number)
  length = length + 1
  results[length] = number == never and -1 or number
end

local function step(i, permits, maxWaitTicks)
  local band, lots = bandsOf[i], lotsOf[keys[i]]
  if lots then
    return held.step(lots, band, permits, now, maxWaitTicks, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i])
  end
  return band.algorithm.step(band, permits, now, maxWaitTicks, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i])
end

-- True if the band allows.
local function stepInto(i)
  retries[i], delays[i], remainders[i], resets[i], writes[i],
    nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i], nextFifths[i] = step(i, permitsOf[i], maxWaitsOf[i])
  return retries[i] == 0
end

-- Buckets that several operations use are written once, at the end.
local function write(i, first, second, third, fourth, fifth)
  if isExclusive and not lotsOf[keys[i]] then return writeCells(KEYS[keys[i]], bandsOf[i], nil, first, second, third, fourth) end
  commit(keys[i], bandsOf[i], first, second, third, fourth, fifth)
end

-- The timestamp of a bucket.
local function stampOf(i)
  local algorithm = bandsOf[i].algorithm
  if algorithm.open then return oldFirsts[i].seenAt end
  return (select(algorithm.stamp, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i]))
end

-- Moves the timestamp of the bucket back if the clock has stepped back.
local function moveBack(i, _, _, _, _, changes, first, second, third, fourth, fifth)
  if not changes then return end
  movedFrom[i] = stampOf(i)
  write(i, first, second, third, fourth, fifth)
  if not bandsOf[i].algorithm.open then
    oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i] = first, second, third, fourth
  end
end

-- Does not charge the band. If it would have allowed, its result becomes that of zero permits, unless `keepResult` is true.
local function skip(i, keepResult)
  local allowed = retries[i] == 0
  if not allowed and not writes[i] then return end
  if allowed and not keepResult then
    local _
    _, delays[i], remainders[i], resets[i] = step(i, 0, 0)
  end
  moveBack(i, step(i, 0, 0))
end

local function emitState(i)
  local algorithm, first = bandsOf[i].algorithm, oldFirsts[i]
  local size = lotsOf[keys[i]] and -1 or first and (movedFrom[i] or 4) or 0
  local second = oldSeconds[i]
  if first and algorithm.unchangedUntil then
    first, second = algorithm.unchangedUntil(bandsOf[i], now, first), first.seenAt
  end
  results[length + 1], results[length + 2], results[length + 3] = size, size > 0 and first or 0, second or 0
  results[length + 4], results[length + 5] = oldThirds[i] or 0, oldFourths[i] or 0
  length = length + 5
end

local function emitBands(count, withStates)
  for i = count, 1, -1 do
    results[length + 1], results[length + 2] = retries[i] == never and -1 or retries[i], delays[i]
    results[length + 3], results[length + 4] = remainders[i], resets[i]
    length = length + 4
    if withStates then emitState(i) end
  end
end

local function chargeAll(items, peek)
  local granted, count = true, 0
  for item = 1, items do
    local allows = true
    for i = count + 1, ends[item] do allows = stepInto(i) and allows end
    count = ends[item]
    allowing[item] = allows
    if not allows and shadows[item] == 0 then granted = false end
  end
  emit(granted and GRANTED or DENIED)
  local i = 0
  for item = 1, items do
    local charged = granted and allowing[item]
    while i < ends[item] do
      i = i + 1
      if charged and not peek then
        write(i, nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i], nextFifths[i])
      else skip(i, charged) end
    end
  end
  emitBands(count, not granted)
end

local function refund(count)
  for i = 1, count do
    local band, lots = bandsOf[i], lotsOf[keys[i]]
    if oldFirsts[i] then
      local grantedAt = instants[i] < 0 and now or instants[i]
      local applies, first, second, third, fourth, fifth
      if lots then
        applies, first, second, third, fourth = held.refund(lots, band, permitsOf[i], now, grantedAt,
          oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i])
      else
        applies, first, second, third, fourth, fifth = band.algorithm.refund(band, permitsOf[i], now, grantedAt,
          oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i])
      end
      if applies then write(i, first, second, third, fourth, fifth) else moveBack(i, step(i, 0, 0)) end
    end
  end
  emit(GRANTED)
end

-- When the clock steps back, a bucket's timestamp moves back as if no time had passed since it was written. A process that
-- has measured the elapsed time corrects it. A bucket with another timestamp than expected was written since and is kept.
local function backdate(count)
  for i = 1, count do
    local band, instant = bandsOf[i], instants[i]
    if oldFirsts[i] and instant >= 0 and not lotsOf[keys[i]] and stampOf(i) == permitsOf[i] then
      moveBack(i, band.algorithm.step(band, 0, instant, 0, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i]))
    end
  end
  emit(GRANTED)
end

local function reset(count)
  for i = 1, count do
    local key = keys[i]
    kinds[key], firsts[key], lotsOf[key] = 0, nil, nil
    willWrite(key, bandsOf[i])
  end
  emit(GRANTED)
end

--@include leases.lua

-- Loads the bucket of band `i`. Returns a problem if the value is not a bucket.
local function loadBand(i, key, band)
  local value = isExclusive and values[key]
  if isExclusive and not value then
    oldFirsts[i] = nil
    return
  end
  if isExclusive and #value == 33 then
    local kind
    kind, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i] = unpackNumbers('<Bdddd', value)
    if kind ~= band.kind then oldFirsts[i] = nil end
    return
  end
  local problem = openBucket(key, band)
  oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i] = firsts[key], seconds[key], thirds[key], fourths[key]
  return problem
end

-- Prepares band `i` of the current operation. Returns the problem of its bucket, if any.
local function prepare(i, permits, maxWaitTicks, key, number)
  local band = bandAt(number)
  keys[i], bandsOf[i], permitsOf[i], maxWaitsOf[i], movedFrom[i] = key, band, permits, maxWaitTicks, nil
  local problem = loadBand(i, key, band)
  return problem and KEYS[key] .. ' ' .. problem
end

-- Reads a PLAIN entry as one item. Returns a problem, if any.
local function readPlain()
  local count, problem = numbers[position + 2], nil
  position, isExclusive = position + 2, false
  for i = 1, count do
    problem = prepare(i, numbers[position + 1], numbers[position + 2], numbers[position + 3], numbers[position + 4]) or problem
    position = position + 4
  end
  shadows[1], ends[1] = 0, count
  return problem
end

-- Reads one decision of a RUN as one item. Returns a problem, if any.
local function readRun(offset, count, key)
  local problem
  isExclusive = true
  for i = 1, count do
    problem = prepare(i, numbers[offset + 1], numbers[offset + 2], key + i - 1, numbers[offset + 3]) or problem
    offset = offset + 3
  end
  shadows[1], ends[1] = 0, count
  return problem
end

-- Reads any other entry. Returns the number of its items and bands, and a problem, if any.
local function readItems()
  local items, count, problem = numbers[position + 3], 0, nil
  isExclusive = numbers[position + 2] == 1
  position = position + 3
  for item = 1, items do
    local permits, maxWaitTicks, itemBands = numbers[position + 1], numbers[position + 2], numbers[position + 4]
    shadows[item] = numbers[position + 3]
    position = position + 4
    for i = count + 1, count + itemBands do
      problem = prepare(i, permits, maxWaitTicks, numbers[position + 1], numbers[position + 2]) or problem
      instants[i] = numbers[position + 3]
      position = position + 3
    end
    count = count + itemBands
    ends[item] = count
  end
  return items, count, problem
end

local function writeHeld(name, band, lots, first, second, third, fourth)
  local expiresAt = math.max(held.refilledAt(lots, band), band.algorithm.expiresAt(band, first, second, third, fourth))
  local value = pack('<Bdddddddd', band.kind, first, second, third, fourth,
    lots.earlier, lots.heldEarlier, lots.later, lots.heldLater)
  call('SET', name, value, expiryOption, expiryArgument(expiresAt))
end

local function fail(problem)
  emit(FAILED)
  problems[#problems + 1] = problem
end

return {
  decide = function(operation)
    local items, count, problem = 1, nil, nil
    if operation == PLAIN then problem = readPlain() else items, count, problem = readItems() end
    -- A reset also removes values that are not buckets.
    if operation == RESET then reset(count)
    elseif problem then fail(problem)
    elseif operation == PLAIN or operation == CHARGE then chargeAll(items, false)
    elseif operation == PEEK then chargeAll(items, true)
    elseif operation == REFUND then refund(count)
    elseif operation == LEASE then lease(count, shadows[1])
    elseif operation == BACKDATE then backdate(count)
    else settle(count) end
  end,

  chargeInRun = function(offset, count, key)
    local problem = readRun(offset, count, key)
    if problem then fail(problem) else chargeAll(1, false) end
  end,

  writeAll = function()
    for _, key in ipairs(changedKeys) do
      local band, name, lots = changed[key], KEYS[key], lotsOf[key]
      local first, second, third, fourth = firsts[key], seconds[key], thirds[key], fourths[key]
      if not first then call('DEL', name)
      elseif band.algorithm.write then band.algorithm.write(first, name, band.algorithm.expiresAt(band, first))
      elseif lots and lots.heldEarlier + lots.heldLater > 0 then
        writeHeld(name, band, lots, first, second, third, fourth)
      else writeCells(name, band, nil, first, second, third, fourth) end
    end
  end,
}
