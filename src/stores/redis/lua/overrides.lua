-- Puts what overrides say in the place of what was asked: from there on a decision does not know that there was one. Runs
-- before the decisions, only if an override was found; `found` has them, by the number of the lookup.
--
-- ARGV[3]   doubles: whether a decision names a bucket of an override by itself; then per lookup: the number of its decision,
--           the number of its first band among those of the decision, how many bands it has, the number of the first of them,
--           which the others follow, and of the first bucket
-- ARGV[4…]  the identity of each lookup; then if any is in a range of addresses that has an override: for each that one, or ''
-- Result    per lookup that has one: its number from 0, and the override
--
-- The bytes of an override are described in overrides/encoding.ts.
local LIMIT, ALLOW = 1, 2
local nowMs = now / 1000
values = values or {}
if not bands then
  --@make bands bands.lua
end

-- Places of keys that are new, by name; and of those that were named, if an override's may be among them.
local placeOfKey, declared, isShared = {}, #KEYS, false
if unpackNumbers('<d', ARGV[3]) == 1 then
  for i, name in ipairs(KEYS) do placeOfKey[name] = i end
end

local function placeOf(name, isLog, beginning)
  local known = placeOfKey[name]
  if known then isShared = isShared or known <= declared
  else
    known = #KEYS + 1
    KEYS[known], placeOfKey[name] = name, known
    values[known] = not isLog and call('GET', name)
  end
  if beginning and not values[known] then values[known] = beginning end
  return known
end

-- A bucket that nobody has used is as if what a balance lacks had been taken from it at that instant. Since it is full
-- again, that is the same as none; until then what is written stays, because its absence would bring the balance back.
local function begin(band, balance, at)
  local algorithm, spent = band.algorithm, band.capacity - balance
  if spent <= 0 then return end
  local _, _, _, _, _, first, second, third, fourth, fifth = algorithm.step(band, spent, at, 0)
  local isLog = algorithm.open ~= nil
  local function log() return algorithm.apply(nil, first, second, third, fourth, fifth) end
  local endsAt = algorithm.expiresAt(band, isLog and log() or first, second, third, fourth)
  if endsAt <= now then return end
  local begun = {}
  for name, part in pairs(algorithm) do begun[name] = part end
  begun.expiresAt = function(...) return math.max(endsAt, algorithm.expiresAt(...)) end
  if isLog then
    begun.open = function(name)
      local kind, found = algorithm.open(name)
      if kind == 0 then return band.kind, log() end
      return kind, found
    end
  else
    band.beginning = pack('<Bdddd', band.kind, first, second, third, fourth)
  end
  band.algorithm, band.endsAtReset = begun, nil
end

-- The band at this place of an override, and where the next one begins, if another one follows.
local function readBand(value, at)
  local bits = string.byte(value, at)
  local capacity, tokens, window
  capacity, at = unpackNumbers(bits % 128 >= 64 and '<I4' or '<I2', value, at + 1)
  tokens = capacity
  if bits % 16 >= 8 then tokens, at = unpackNumbers('<I4', value, at) end
  if bits % 64 >= 32 then window, at = unpackNumbers('<d', value, at)
  else
    window, at = unpackNumbers('<I3', value, at)
    window = window * 1000000
  end
  if bits % 32 >= 16 then at = string.find(value, string.char(0), at, true) + 1 end
  return bands.new(bits % 8, capacity, tokens, window), at, bits >= 128
end

-- The numbers of an override's bands, which of them are logs, and how the names of its buckets end: the same for all that
-- say this. If it has none the rule's stay: `count` of them, from this number on.
local limits = {}
local function limitOf(value, at, first, count)
  local flags = string.byte(value)
  local hasBands, from = flags % 8 >= 4, at
  if limits[value] then return limits[value] end
  local balance, balanceAt
  if flags % 64 >= 32 then balance, balanceAt, at = unpackNumbers('<I4I6', value, at) end
  local limit = { hasLog = false }
  local function add(band)
    -- Whose clock is ahead of this one has written it a moment ago.
    if balance then begin(band, balance, math.min(now, balanceAt * 1000)) end
    local isLog = band.algorithm.open ~= nil
    limit[#limit + 1] = { band = bands.add(band), beginning = band.beginning, isLog = isLog }
    limit.hasLog = limit.hasLog or isLog
  end
  local more = hasBands
  while more do
    local band
    band, at, more = readBand(value, at)
    add(band)
  end
  for number = first, hasBands and 0 or first + count - 1 do
    local band = bands.at(number)
    add(bands.new(band.kind, band.capacity, band.tokens, band.window))
  end
  limit.ending = '.' .. string.sub(redis.sha1hex(string.sub(value, from, at - 1)), 1, 10) .. ':'
  -- Without bands of its own, it is another one for another rule.
  if hasBands then limits[value] = limit end
  return limit
end

-- A band that says no, until the override ends.
local function denial(expiresAt)
  local retryAfter = expiresAt and ceil(expiresAt * 1000) - now or never
  local resetAt = expiresAt and ceil(expiresAt * 1000) or now
  local function step() return retryAfter, 0, 0, resetAt, false end
  return { kind = -1, step = step, algorithm = { step = step } }
end

-- By number of the decision and of the first band: those that take the place of the rule's, each as its key and its number.
local insteadOf, applied = {}, {}
for i = 1, lookups do
  local value, action, at, expiresAt = found and found[i], nil, nil, nil
  -- What the identity has, or else the range it is in; unless that has expired.
  for _ = 1, 2 do
    if value and value ~= '' and not action then
      local flags = string.byte(value)
      action, at, expiresAt = flags % 4, 2, nil
      if flags % 16 >= 8 then expiresAt, at = unpackNumbers('<I6', value, 2) end
      if expiresAt and expiresAt <= nowMs then action = nil end
    end
    if not action then value = ARGV[3 + lookups + i] end
  end
  if action then
    applied[#applied + 1] = i - 1
    applied[#applied + 1] = value
    local decision, first, count, number, bucket = unpackNumbers('<ddddd', ARGV[3], i * 40 - 31)
    -- What comes before the label of the band.
    local base, made, isRun = string.match(KEYS[bucket], '^(.*):'), {}, true
    if action == LIMIT then
      local limit = limitOf(value, at, number, count)
      for j = 1, #limit do
        local one, next = limit[j], #KEYS + 1
        made[2 * j - 1] = placeOf(base .. limit.ending .. (j - 1), one.isLog, one.beginning)
        made[2 * j] = one.band
        isRun = isRun and made[2 * j - 1] == next
      end
      isRun = isRun and not limit.hasLog
    elseif action ~= ALLOW then
      -- No key has this name.
      made[1], made[2] = placeOf(base .. ' ', false, nil), bands.add(denial(expiresAt))
    end
    made.count, made.isRun = count, isRun
    insteadOf[decision] = insteadOf[decision] or {}
    insteadOf[decision][first] = made
  end
end
if not applied[1] then return end

local list, entries, from, to = {}, 0, place, place
for i = 1, place do list[i] = numbers[i] end

local function copy(count)
  for _ = 1, count do
    from, to = from + 1, to + 1
    list[to] = numbers[from]
  end
end

local function put(one, two, three, four)
  list[to + 1], list[to + 2], list[to + 3], list[to + 4] = one, two, three, four
  to = to + 4
end

-- Decisions of a run as they are.
local function putRun(decisions, count, key, terms)
  if decisions == 0 then return end
  entries = entries + 1
  put(RUN, decisions, count, key)
  for i = terms + 1, terms + 3 * count do
    to = to + 1
    list[to] = numbers[i]
  end
end

-- One decision of a run, all of whose bands are others now.
local function putOther(made, permits, maxWaitTicks)
  put(RUN, 1, #made / 2, made[1] or 1)
  for j = 2, #made, 2 do
    list[to + 1], list[to + 2], list[to + 3] = permits, maxWaitTicks, made[j]
    to = to + 3
  end
end

-- One PLAIN decision; `bandAt` says what is asked of which bucket, by the number of the band.
local function putPlain(count, instead, bandAt)
  local head, i = to, 1
  list[to + 1], list[to + 2], to = PLAIN, count, to + 2
  while i <= count do
    local permits, maxWaitTicks, key, band = bandAt(i)
    local made = instead and instead[i]
    if made then
      for j = 1, #made, 2 do put(permits, maxWaitTicks, made[j], made[j + 1]) end
      list[head + 2] = list[head + 2] - made.count + #made / 2
    else put(permits, maxWaitTicks, key, band) end
    i = i + (made and made.count or 1)
  end
end

local decision = 0
for _ = 1, entryCount do
  local what = numbers[from + 1]
  if what == RUN then
    local decisions, count, key, terms = numbers[from + 2], numbers[from + 3], numbers[from + 4], from + 4
    local asBefore = 0
    for _ = 1, decisions do
      decision = decision + 1
      local instead = insteadOf[decision]
      -- If another decision names one of these buckets by itself, nobody can be sure to be alone.
      if instead or isShared then
        putRun(asBefore, count, key - asBefore * count, terms)
        asBefore, entries = 0, entries + 1
        local made = instead and instead[1]
        if made and made.count == count and made.isRun and not isShared then
          putOther(made, numbers[terms + 1], numbers[terms + 2])
        else
          putPlain(count, instead, function(i)
            local term = terms + 3 * i - 3
            return numbers[term + 1], numbers[term + 2], key + i - 1, numbers[term + 3]
          end)
        end
      else asBefore = asBefore + 1 end
      key = key + count
    end
    putRun(asBefore, count, key - asBefore * count, terms)
    from = terms + 3 * count
  else
    decision, entries = decision + 1, entries + 1
    local instead = insteadOf[decision]
    if what == PLAIN then
      local count, terms = numbers[from + 2], from + 2
      putPlain(count, instead, function(i) return unpack(numbers, terms + 4 * i - 3, terms + 4 * i) end)
      from = terms + 4 * count
    else
      local demands, first = numbers[from + 3], 1
      copy(3)
      -- Its buckets may be logs now, or be named by another.
      if instead or isShared then list[to - 1] = 0 end
      for _ = 1, demands do
        copy(4)
        local here, counted, made = numbers[from], to, instead and instead[first]
        -- Whoever forgets an identity forgets all of it.
        if not made or what == RESET then copy(3 * here) else from = from + 3 * here end
        if made then
          list[counted] = #made / 2 + (what == RESET and here or 0)
          for j = 1, #made, 2 do
            list[to + 1], list[to + 2], list[to + 3] = made[j], made[j + 1], -1
            to = to + 3
          end
        end
        first = first + here
      end
    end
  end
end
numbers, entryCount = list, entries
return applied
