-- Charges whose keys are used several times in the batch or have logs, leased permits or other records; and all other operations.
local CHARGE, PEEK, REFUND, LEASE, SETTLE, RESET, BACKDATE = 1, 2, 3, 4, 5, 6, 8
local QUEUE, ACQUIRE, RELEASE, RENEW = 20, 21, 22, 23
local FORCE, PARTIAL = 24, 25
local RESERVE, END = 26, 27
local notABucket = 'holds something that is not a bucket'

--@include values.lua

-- Messages of failed operations, in order.
local problems = {}

-- The overrides that apply; and by number of the decision and of the item, the key and the bands that replace those of the rule.
local applied, replacements
if found then
  --@make applied overrides.lua
end

-- Bans; created only if a rule has one.
local bans
local banTerms = numbers[#numbers]
if type(banTerms) == 'table' then
  --@make bans bans.lua
end

-- The bands and items of the current operation, and the results of its bands. The tables are reused by the next operation.
local buckets, bandsOf, permitsOf, maxWaitsOf, instants = {}, {}, {}, {}, {}
-- The shares of a permit (scale.lua); 1 if the bucket counts in permits. The bands are then in shares.
local sharesOf = {}
local oldFirsts, oldSeconds, oldThirds, oldFourths, movedFrom = {}, {}, {}, {}, {}
local shadows, ends, allowing, banned, started = {}, {}, {}, {}, {}
local retries, delays, remainders, resets, writes = {}, {}, {}, {}, {}
local nextFirsts, nextSeconds, nextThirds, nextFourths, nextFifths = {}, {}, {}, {}, {}

local function emit(number)
  length = length + 1
  results[length] = number
end

local function stepShares(i, permits, maxWaitTicks)
  local band, lots = bandsOf[i], buckets[i].lots
  if lots then
    return held.step(lots, band, permits, now, maxWaitTicks, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i])
  end
  return band.algorithm.step(band, permits, now, maxWaitTicks, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i])
end

-- A bucket that was converted for one operation is not written, not even if the clock has stepped back.
local function inPermits(i, retryAfter, delay, remaining, resetAt, changes, ...)
  return retryAfter, delay, floor(remaining / sharesOf[i]), resetAt, changes and not buckets[i].original, ...
end

local function step(i, permits, maxWaitTicks)
  local shares = sharesOf[i]
  if shares == 1 and not buckets[i].original then return stepShares(i, permits, maxWaitTicks) end
  return inPermits(i, stepShares(i, permits * shares, maxWaitTicks))
end

-- True if the band allows.
local function stepInto(i)
  retries[i], delays[i], remainders[i], resets[i], writes[i],
    nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i], nextFifths[i] = step(i, permitsOf[i], maxWaitsOf[i])
  return retries[i] == 0
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
  commit(buckets[i], first, second, third, fourth, fifth)
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
  -- Another process may release a hold at any time, so a rejection because of holds is never cached. The caller counts in permits.
  -- A reservation is refunded when it expires.
  local isUnknown = buckets[i].lots or algorithm.takesHolds or sharesOf[i] ~= 1 and not algorithm.unchangedUntil
    or buckets[i].reserved and buckets[i].reserved.refunded > 0
  local size = isUnknown and -1 or first and (movedFrom[i] or 4) or 0
  local second = oldSeconds[i]
  if first and algorithm.unchangedUntil then
    first, second = algorithm.unchangedUntil(bandsOf[i], now, first), first.seenAt
  end
  results[length + 1], results[length + 2], results[length + 3] = size, size > 0 and first or 0, second or 0
  results[length + 4], results[length + 5] = oldThirds[i] or 0, oldFourths[i] or 0
  length = length + 5
end

local function emitBands(count, withStates)
  for i = 1, count do
    results[length + 1], results[length + 2] = retries[i] == never and -1 or retries[i], delays[i]
    results[length + 3], results[length + 4] = remainders[i], resets[i]
    length = length + 4
    if withStates then emitState(i) end
  end
end

local function emitAllowed(count)
  for i = 1, count do
    results[length + 1], results[length + 2] = remainders[i], resets[i]
    length = length + 2
  end
end

-- By band, the id of the hold that a charge takes. holds.lua fills it.
local chargedHolds = {}

-- The ban of an item. A shadow rule and an override that allows or denies every request have none.
local function banOf(item)
  local ofItems = bans and bans.ofDecision(decision)
  if not ofItems or shadows[item] ~= 0 then return nil end
  local replaced = replacements and replacements[decision] and replacements[decision][item]
  if replaced and (replaced.count == 0 or bandAt(replaced.first).hasNoBucket) then return nil end
  return ofItems[item]
end

-- Denies the bands of an item until the ban ends. They are not charged, so their results are those of zero permits.
local function denyUntil(tick, first, last)
  for i = first, last do
    if retries[i] == 0 then
      local _
      _, delays[i], remainders[i], resets[i] = step(i, 0, 0)
    end
    retries[i], remainders[i] = max(retries[i], tick - now), 0
  end
end

-- Counts the rejections of a denied decision. A rejection that starts a ban is allowed again after the ban.
local function countRejections(items)
  local i = 0
  for item = 1, items do
    local ban = not allowing[item] and banned[item] == 0 and banOf(item)
    local tick = ban and bans.reject(ban) or 0
    started[item] = tick
    for j = i + 1, tick > 0 and ends[item] or 0 do
      if retries[j] > 0 then retries[j] = max(retries[j], tick - now) end
    end
    i = ends[item]
  end
end

-- Per item with a ban: its end, or 0, and whether this decision has started it.
local function emitBans(items)
  for item = 1, items do
    if banOf(item) then
      emit(banned[item] > 0 and banned[item] or started[item])
      emit(started[item] > 0 and 1 or 0)
    end
  end
end

-- Returns whether the decision is granted.
local function chargeAll(items, peek)
  local granted, isPlain, count = true, true, 0
  for item = 1, items do
    local allows = true
    for i = count + 1, ends[item] do
      allows = stepInto(i) and allows
      isPlain = isPlain and delays[i] == 0
    end
    local ban = bans and banOf(item)
    banned[item], started[item] = ban and bans.untilOf(ban) or 0, 0
    if banned[item] > 0 then
      allows = false
      denyUntil(banned[item], count + 1, ends[item])
    end
    count = ends[item]
    allowing[item] = allows
    isPlain = isPlain and allows
    if not allows and shadows[item] == 0 then granted = false end
  end
  local i = 0
  for item = 1, items do
    local charged = granted and allowing[item]
    while i < ends[item] do
      i = i + 1
      if charged and not peek then
        commit(buckets[i], nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i], nextFifths[i],
          chargedHolds[i])
      else skip(i, charged) end
    end
  end
  if granted and isPlain then
    emit(ALLOWED)
    emitAllowed(count)
  else
    if bans and not granted and not peek then countRejections(items) end
    emit(granted and GRANTED or DENIED)
    emitBands(count, not granted)
    if bans and not granted then emitBans(items) end
  end
  return granted
end

local function refundBand(i)
  local band, bucket = bandsOf[i], buckets[i]
  local first, second, third, fourth, fifth = bucket.first, bucket.second, bucket.third, bucket.fourth, nil
  if not first then return end
  local grantedAt, applies = (instants[i] or -1) < 0 and now or instants[i], nil
  if bucket.lots then
    applies, first, second, third, fourth =
      held.refund(bucket.lots, band, permitsOf[i] * sharesOf[i], now, grantedAt, first, second, third, fourth)
  else
    applies, first, second, third, fourth, fifth =
      band.algorithm.refund(band, permitsOf[i] * sharesOf[i], now, grantedAt, first, second, third, fourth)
  end
  if applies then commit(bucket, first, second, third, fourth, fifth) else moveBack(i, step(i, 0, 0)) end
end

local function refund(count)
  for i = 1, count do refundBand(i) end
  emit(GRANTED)
end

-- When the clock steps back, a bucket's timestamp moves back as if no time had passed since it was written. A process that
-- has measured the elapsed time corrects it. A bucket with another timestamp than expected was written since and is kept.
local function backdate(count)
  for i = 1, count do
    local band, instant = bandsOf[i], instants[i]
    local isKnown = not band.isCalendar or instant >= band.window[1]
    local isStored = oldFirsts[i] and not buckets[i].lots and not buckets[i].original
    if isStored and instant >= 0 and isKnown and stampOf(i) == permitsOf[i] then
      moveBack(i, band.algorithm.step(band, 0, instant, 0, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i]))
    end
  end
  emit(GRANTED)
end

-- Removes the buckets of an item, and a value that is not made of buckets.
local function resetItem(key, first, count)
  local holder = loaded[key] or loadKey(key)
  holder.problem = nil
  for number = first, first + count - 1 do
    local band = bandAt(number)
    local bucket = not band.hasNoBucket and openBucket(key, band)
    if bucket then bucket.first, bucket.lots, bucket.original, bucket.reserved = nil, nil, nil, nil end
  end
  willWrite(key)
end

--@include leases.lua
--@include holds.lua
--@include hold-queue.lua
--@include variants.lua

-- Returns a tick for which a calendar band has no period: now, or the latest time of its bucket. Two later periods are needed,
-- because a request may wait for the next one, which ends with the one after it.
local function uncoveredTick(band, window, at)
  local starts, latest = band.window, max(now, window or 0, at or 0)
  if now < starts[1] then return now end
  if latest >= starts[#starts - 1] then return latest end
end

-- Prepares band `i` of the current operation, which `converts` its bucket to a new definition. Returns the problem of its key,
-- if any.
local function prepare(i, permits, maxWaitTicks, key, band, converts)
  local bucket, problem = {}, nil
  sharesOf[i] = 1
  if not band.hasNoBucket then bucket, problem = openBucket(key, band) end
  if bucket and band.definition then band, sharesOf[i] = loadScale().open(bucket, band, converts) end
  buckets[i], bandsOf[i], permitsOf[i], maxWaitsOf[i], movedFrom[i] = bucket, band, permits, maxWaitTicks, nil
  if problem then return KEYS[key] .. ' ' .. problem end
  oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i] = bucket.first, bucket.second, bucket.third, bucket.fourth
  local tick = band.isCalendar and uncoveredTick(band, bucket.first, bucket.third)
  if tick then return format('PERIOD %d', tick) end
end

local function replacementOf(item)
  local replaced = replacements and replacements[decision]
  return replaced and replaced[item]
end

-- Prepares the bands of an item after the band `from`: those of the rule, or of the override of the identity. Returns the number
-- of the last one, and a problem, if any.
local function openItem(item, permits, maxWaitTicks, key, first, count, from, converts)
  local replacement, problem = replacementOf(item), nil
  if replacement then key, first, count = replacement.key, replacement.first, replacement.count end
  for j = 0, count - 1 do
    problem = prepare(from + j + 1, permits, maxWaitTicks, key, bandAt(first + j), converts) or problem
  end
  ends[item] = from + count
  return from + count, problem
end

local function fail(problem)
  emit(FAILED)
  problems[#problems + 1] = problem
end

local function chargeRun(offset, items, key, listed)
  local count, problem, itemProblem = 0, nil, nil
  for item = 1, items do
    local terms, number = offset + 4 * item, listed and numbers[listed + item] or key + item - 1
    shadows[item] = 0
    count, itemProblem = openItem(item, numbers[terms - 3], numbers[terms - 2], number, numbers[terms - 1],
      numbers[terms], count, true)
    problem = itemProblem or problem
  end
  if problem then fail(problem) else chargeAll(items, false) end
end

-- Reads the items of any other operation. Returns the number of its items and bands, and a problem, if any.
local function readItems(operation)
  local hasInstants = operation == REFUND or operation == SETTLE or operation == BACKDATE or operation == RELEASE
  local hasHolds = operation >= QUEUE and operation <= RENEW
  local items, count, problem, itemProblem = numbers[position + 2], 0, nil, nil
  local keeps = operation == PEEK or operation == RENEW or operation == BACKDATE
  position = position + 2
  for item = 1, items do
    local before, bandsHere, permits = count, numbers[position + 6], numbers[position + 1]
    local converts = not keeps and (operation ~= RELEASE or permits > 0)
    shadows[item] = numbers[position + 3]
    count, itemProblem = openItem(item, permits, numbers[position + 2], numbers[position + 4], numbers[position + 5],
      bandsHere, count, converts)
    problem = itemProblem or problem
    position = position + 6
    if hasInstants then
      for j = 1, count - before do instants[before + j] = j <= bandsHere and numbers[position + j] or -1 end
      position = position + bandsHere
    end
    if hasHolds then readHoldId(before + 1, count) end
  end
  return items, count, problem
end

-- Resets the buckets of the rule and of an override.
local function reset()
  local items = numbers[position + 2]
  position = position + 2
  for item = 1, items do
    local replacement = replacementOf(item)
    if replacement then resetItem(replacement.key, replacement.first, replacement.count) end
    resetItem(numbers[position + 4], numbers[position + 5], numbers[position + 6])
    local ofItems = bans and bans.ofDecision(decision)
    if ofItems and ofItems[item] then bans.reset(ofItems[item]) end
    position = position + 6
  end
  emit(GRANTED)
end

-- Reservations; created only if an operation makes or ends one.
local reservations

local function decide(operation)
  if operation == RESET then return reset() end
  if operation >= RESERVE then
    if not reservations then
      --@make reservations reservations.lua
    end
    return reservations.decide(operation)
  end
  local items, count, problem = readItems(operation)
  if problem then fail(problem)
  elseif operation == CHARGE then chargeAll(items, false)
  elseif operation == ACQUIRE or operation == QUEUE then acquire(items, count, operation == QUEUE)
  elseif operation == RELEASE then release(count)
  elseif operation == RENEW then renew(count)
  elseif operation == PEEK then chargeAll(items, true)
  elseif operation == REFUND then refund(count)
  elseif operation == LEASE then lease(count, shadows[1])
  elseif operation == FORCE then force(count)
  elseif operation == PARTIAL then takePart(count, shadows[1])
  elseif operation == BACKDATE then backdate(count)
  else settle(count) end
end

return {
  chargeRun = chargeRun,
  decide = decide,
  writeChanged = writeChanged,

  extra = function()
    problems[#problems + 1] = applied
    return problems
  end,
}
