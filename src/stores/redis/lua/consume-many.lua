-- Decisions about buckets that others of the same call are about too, or of which permits are held; peeks, refunds and leases.

local BACKDATE = 8

-- Permits that processes hold in advance; made once a bucket has some.
local held
local function openHeld()
  if not held then
    --@make held held.lua
  end
  return held
end

-- By key: the kind of bucket that is there (0 for none), its numbers (or its log), what is held of it, and by which band
-- it is to be written.
local kinds, firsts, seconds, thirds, fourths = {}, {}, {}, {}, {}
local lotsOf, changed, changedKeys = {}, {}, {}

-- Reads a bucket once; the result says what is wrong with it, if anything is.
local function open(key, band)
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
      openHeld()
    else
      local kind = string.byte(value)
      kinds[key] = kind and kind ~= band.kind and kind <= kindsOfBuckets and kind or noBucket
    end
  end
  if kinds[key] == noBucket then return noBucket end
  -- What another algorithm has left behind means nothing to this one.
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

-- What the decision under way is about, per band and per demand, and what its bands say; reused by the next.
local keys, claimed, permitsOf, patienceOf, instants = {}, {}, {}, {}, {}
local oldFirsts, oldSeconds, oldThirds, oldFourths, movedFrom = {}, {}, {}, {}, {}
local isAlone
local shadows, ends, allowing = {}, {}, {}
local retries, delays, remainders, resets, writes = {}, {}, {}, {}, {}
local nextFirsts, nextSeconds, nextThirds, nextFourths, nextFifths = {}, {}, {}, {}, {}

local function say(number)
  length = length + 1
  results[length] = number == never and -1 or number
end

local function step(i, permits, maxWaitTicks)
  local band, lots = claimed[i], lotsOf[keys[i]]
  if lots then
    return held.step(lots, band, permits, now, maxWaitTicks, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i])
  end
  return band.algorithm.step(band, permits, now, maxWaitTicks, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i])
end

-- True if the band allows.
local function stepInto(i)
  retries[i], delays[i], remainders[i], resets[i], writes[i],
    nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i], nextFifths[i] = step(i, permitsOf[i], patienceOf[i])
  return retries[i] == 0
end

-- What other decisions may be about too is written once, at the end.
local function write(i, first, second, third, fourth, fifth)
  if isAlone and not lotsOf[keys[i]] then return writeCells(KEYS[keys[i]], claimed[i], nil, first, second, third, fourth) end
  commit(keys[i], claimed[i], first, second, third, fourth, fifth)
end

-- The instant that a bucket counts from.
local function stampOf(i)
  local algorithm = claimed[i].algorithm
  if algorithm.open then return oldFirsts[i].seenAt end
  return (select(algorithm.stamp, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i]))
end

-- Moves the bucket along if time has stepped back.
local function moveAlong(i, _, _, _, _, moves, first, second, third, fourth, fifth)
  if not moves then return end
  movedFrom[i] = stampOf(i)
  write(i, first, second, third, fourth, fifth)
  if not claimed[i].algorithm.open then
    oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i] = first, second, third, fourth
  end
end

-- Charges nothing. A band that would have allowed is told as it stands, unless `keep` says that its answer is wanted.
local function leave(i, keep)
  local allowed = retries[i] == 0
  if not allowed and not writes[i] then return end
  if allowed and not keep then
    local _
    _, delays[i], remainders[i], resets[i] = step(i, 0, 0)
  end
  moveAlong(i, step(i, 0, 0))
end

local function sayState(i)
  local algorithm, first = claimed[i].algorithm, oldFirsts[i]
  local size = lotsOf[keys[i]] and -1 or first and (movedFrom[i] or 4) or 0
  local second = oldSeconds[i]
  if first and algorithm.unchangedUntil then
    first, second = algorithm.unchangedUntil(claimed[i], now, first), first.seenAt
  end
  results[length + 1], results[length + 2], results[length + 3] = size, size > 0 and first or 0, second or 0
  results[length + 4], results[length + 5] = oldThirds[i] or 0, oldFourths[i] or 0
  length = length + 5
end

local function sayBands(count, withStates)
  for i = count, 1, -1 do
    results[length + 1], results[length + 2] = retries[i] == never and -1 or retries[i], delays[i]
    results[length + 3], results[length + 4] = remainders[i], resets[i]
    length = length + 4
    if withStates then sayState(i) end
  end
end

local function chargeAll(demands, peek)
  local granted, count = true, 0
  for demand = 1, demands do
    local allows = true
    for i = count + 1, ends[demand] do allows = stepInto(i) and allows end
    count = ends[demand]
    allowing[demand] = allows
    if not allows and shadows[demand] == 0 then granted = false end
  end
  say(granted and GRANTED or REFUSED)
  local i = 0
  for demand = 1, demands do
    local charged = granted and allowing[demand]
    while i < ends[demand] do
      i = i + 1
      if charged and not peek then
        write(i, nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i], nextFifths[i])
      else leave(i, charged) end
    end
  end
  sayBands(count, not granted)
end

local function refund(count)
  for i = 1, count do
    local band, lots = claimed[i], lotsOf[keys[i]]
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
      if applies then write(i, first, second, third, fourth, fifth) else moveAlong(i, step(i, 0, 0)) end
    end
  end
  say(GRANTED)
end

-- Buckets move along when time steps back, as if none had passed since they were written. A process that has measured how
-- much did pass says from when they count. A bucket that counts from another instant than expected was written by others.
local function backdate(count)
  for i = 1, count do
    local band, instant = claimed[i], instants[i]
    if oldFirsts[i] and instant >= 0 and not lotsOf[keys[i]] and stampOf(i) == permitsOf[i] then
      moveAlong(i, band.algorithm.step(band, 0, instant, 0, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i]))
    end
  end
  say(GRANTED)
end

local function reset(count)
  for i = 1, count do
    local key = keys[i]
    kinds[key], firsts[key], lotsOf[key] = 0, nil, nil
    willWrite(key, claimed[i])
  end
  say(GRANTED)
end

--@include leases.lua

-- Reads the bucket of a band; the result says what is wrong with it, if anything is.
local function find(i, key, band)
  local value = isAlone and values[key]
  if isAlone and not value then
    oldFirsts[i] = nil
    return
  end
  if isAlone and #value == 33 then
    local kind
    kind, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i] = unpackNumbers('<Bdddd', value)
    if kind ~= band.kind then oldFirsts[i] = nil end
    return
  end
  local wrong = open(key, band)
  oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i] = firsts[key], seconds[key], thirds[key], fourths[key]
  return wrong
end

-- Reads what is asked of a band; the result says what is wrong with its bucket, if anything is.
local function claim(i, permits, maxWaitTicks, key, number)
  local band = bandAt(number)
  keys[i], claimed[i], permitsOf[i], patienceOf[i], movedFrom[i] = key, band, permits, maxWaitTicks, nil
  local wrong = find(i, key, band)
  return wrong and KEYS[key] .. ' ' .. wrong
end

-- Reads a PLAIN decision, as one demand; what is wrong with it, if anything is.
local function readPlain()
  local count, problem = numbers[place + 2], nil
  place, isAlone = place + 2, false
  for i = 1, count do
    problem = claim(i, numbers[place + 1], numbers[place + 2], numbers[place + 3], numbers[place + 4]) or problem
    place = place + 4
  end
  shadows[1], ends[1] = 0, count
  return problem
end

-- The same for one decision of a RUN.
local function readOfRun(terms, count, key)
  local problem
  isAlone = true
  for i = 1, count do
    problem = claim(i, numbers[terms + 1], numbers[terms + 2], key + i - 1, numbers[terms + 3]) or problem
    terms = terms + 3
  end
  shadows[1], ends[1] = 0, count
  return problem
end

-- Reads any other; the number of its demands and of its bands, and what is wrong.
local function read()
  local demands, count, problem = numbers[place + 3], 0, nil
  isAlone = numbers[place + 2] == 1
  place = place + 3
  for demand = 1, demands do
    local permits, maxWaitTicks, bandsHere = numbers[place + 1], numbers[place + 2], numbers[place + 4]
    shadows[demand] = numbers[place + 3]
    place = place + 4
    for i = count + 1, count + bandsHere do
      problem = claim(i, permits, maxWaitTicks, numbers[place + 1], numbers[place + 2]) or problem
      instants[i] = numbers[place + 3]
      place = place + 3
    end
    count = count + bandsHere
    ends[demand] = count
  end
  return demands, count, problem
end

local function writeHeld(name, band, lots, first, second, third, fourth)
  local expiresAt = math.max(held.roomAgainAt(lots, band), band.algorithm.expiresAt(band, first, second, third, fourth))
  local value = pack('<Bdddddddd', band.kind, first, second, third, fourth,
    lots.earlier, lots.heldEarlier, lots.later, lots.heldLater)
  call('SET', name, value, endsBy, ending(expiresAt))
end

local function unable(problem)
  say(UNABLE)
  problems[#problems + 1] = problem
end

return {
  decide = function(what)
    local demands, count, problem = 1, nil, nil
    if what == PLAIN then problem = readPlain() else demands, count, problem = read() end
    -- Forgetting what is not a bucket is a way to be rid of it.
    if what == RESET then reset(count)
    elseif problem then unable(problem)
    elseif what == PLAIN or what == CHARGE then chargeAll(demands, false)
    elseif what == PEEK then chargeAll(demands, true)
    elseif what == REFUND then refund(count)
    elseif what == LEASE then lease(count, shadows[1])
    elseif what == BACKDATE then backdate(count)
    else settle(count) end
  end,

  chargeOfRun = function(terms, count, key)
    local problem = readOfRun(terms, count, key)
    if problem then unable(problem) else chargeAll(1, false) end
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
