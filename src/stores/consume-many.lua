-- Decisions about several bands, peeks, refunds and leases: what is not the one band that most decisions are about.
local keys, claimed, permitsOf, patienceOf, instants = {}, {}, {}, {}, {}
local shadows, ends, allowing = {}, {}, {}
local retries, delays, remainders, resets, writes = {}, {}, {}, {}, {}
local nextFirsts, nextSeconds, nextThirds, nextFourths, nextFifths = {}, {}, {}, {}, {}

local function say(number)
  length = length + 1
  results[length] = exactly(number)
end

local function step(i, permits, patience)
  local key, band = keys[i], claimed[i]
  if lotsOf[key] then
    return held.step(lotsOf[key], band, permits, now, patience, firsts[key], seconds[key], thirds[key], fourths[key])
  end
  return band.step(band, permits, now, patience, firsts[key], seconds[key], thirds[key], fourths[key])
end

-- True if the band allows.
local function stepInto(i)
  retries[i], delays[i], remainders[i], resets[i], writes[i],
    nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i], nextFifths[i] = step(i, permitsOf[i], patienceOf[i])
  return retries[i] == 0
end

local function write(i)
  commit(keys[i], claimed[i], nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i], nextFifths[i])
end

-- Moves the bucket along if time has stepped back.
local function moveAlong(i, _, _, _, _, moves, first, second, third, fourth, fifth)
  if moves then commit(keys[i], claimed[i], first, second, third, fourth, fifth) end
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

local function sayBands(count)
  for i = 1, count do
    say(retries[i])
    say(delays[i])
    say(remainders[i])
    say(resets[i])
  end
end

local function sayState(i)
  local key = keys[i]
  if claimed[i].algorithm.open or lotsOf[key] then return say(-1) end
  if firsts[key] == nil then return say(0) end
  say(4)
  say(firsts[key])
  say(seconds[key])
  say(thirds[key])
  say(fourths[key])
end

local function charge(demands, peek)
  local granted, count = true, 0
  for demand = 1, demands do
    local allows = true
    for i = count + 1, ends[demand] do allows = stepInto(i) and allows end
    count = ends[demand]
    allowing[demand] = allows
    if not allows and shadows[demand] == 0 then granted = false end
  end
  say(granted and 1 or 0)
  local i = 0
  for demand = 1, demands do
    local charged = granted and allowing[demand]
    while i < ends[demand] do
      i = i + 1
      if charged and not peek then write(i) else leave(i, charged) end
    end
  end
  sayBands(count)
  if not granted and not peek then
    for band = 1, count do sayState(band) end
  end
end

local function refund(count)
  for i = 1, count do
    local key, band = keys[i], claimed[i]
    if firsts[key] then
      local grantedAt = instants[i] < 0 and now or instants[i]
      local applies, first, second, third, fourth, fifth
      if lotsOf[key] then
        applies, first, second, third, fourth = held.refund(lotsOf[key], band, permitsOf[i], now, grantedAt,
          firsts[key], seconds[key], thirds[key], fourths[key])
      else
        applies, first, second, third, fourth, fifth =
          band.algorithm.refund(band, permitsOf[i], now, grantedAt, firsts[key], seconds[key], thirds[key], fourths[key])
      end
      if applies then commit(key, band, first, second, third, fourth, fifth) else moveAlong(i, step(i, 0, 0)) end
    end
  end
  say(1)
end

-- Takes as many permits as there are: no more than wanted, no fewer than needed.
local function lease(count, wanted)
  held = held or openHeld()
  local amount = wanted
  for i = 1, count do
    local _, _, remaining = step(i, 0, 0)
    if remaining < amount then amount = remaining end
  end
  if amount < permitsOf[1] then amount = permitsOf[1] end
  local granted, ending = true, held.leaseEnd(now)
  for i = 1, count do
    permitsOf[i] = amount
    granted = stepInto(i) and granted
  end
  say(granted and 1 or 0)
  for i = 1, count do
    if not granted then leave(i, false)
    else
      write(i)
      if claimed[i].algorithm.isWindow then ending = math.min(ending, resets[i])
      else lotsOf[keys[i]] = held.hold(lotsOf[keys[i]], amount, now) end
    end
  end
  sayBands(count)
  if granted then
    say(amount)
    say(ending)
  end
end

-- Permits of a lease that are held no longer.
local function settle(count)
  for i = 1, count do
    local key, lots = keys[i], lotsOf[keys[i]]
    if lots then
      commit(key, claimed[i], held.release(lots, claimed[i], permitsOf[i], instants[i], now,
        firsts[key], seconds[key], thirds[key], fourths[key]))
    end
  end
  say(1)
end

return function(what, demands)
  place = place + 2
  local count, problem = 0, nil
  for demand = 1, demands do
    local permits, patience, bandsHere = numbers[place + 1], numbers[place + 2], numbers[place + 4]
    shadows[demand] = numbers[place + 3]
    place = place + 4
    for i = count + 1, count + bandsHere do
      keys[i], claimed[i], instants[i] = numbers[place + 1], bands[numbers[place + 2]], numbers[place + 3]
      permitsOf[i], patienceOf[i] = permits, patience
      local wrong = open(keys[i], claimed[i])
      if wrong then problem = KEYS[keys[i]] .. ' ' .. wrong end
      place = place + 3
    end
    count = count + bandsHere
    ends[demand] = count
  end
  if problem then
    length = length + 1
    results[length] = problem
  elseif what == CHARGE then charge(demands, false)
  elseif what == PEEK then charge(demands, true)
  elseif what == REFUND then refund(count)
  elseif what == LEASE then lease(count, shadows[1])
  else settle(count) end
end
