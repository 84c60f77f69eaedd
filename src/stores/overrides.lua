-- Puts what overrides say in the place of what was asked: from there on a decision does not know that there was one. Runs
-- before the decisions, only if an override was found; `found` has them, by the number of the lookup.
--
-- ARGV[2]   doubles: whether a decision names a bucket of an override by itself; then per lookup: the number of its decision,
--           the number of its first band among those of the decision, how many bands it has
-- ARGV[3…]  per lookup: the identity; how the names of its buckets begin; an override in case it has none, or ''; and the
--           one whose buckets are asked for already, or ''
-- Result    per lookup that has one: its number from 0, and the override
--
-- The bytes of an override are described in override-value.ts.
local LIMIT, ALLOW = 1, 2
local nowMs = now / 1000
values = values or {}
if not bands then
  --@make bands bands.lua
end

-- Places of keys that are new, by name; and of those that were named, if an override's may be among them.
local placeOfKey, declared, isShared = {}, #KEYS, false
if unpackNumbers('<d', ARGV[2]) == 1 then
  for i, name in ipairs(KEYS) do placeOfKey[name] = i end
end

local function placeOf(name, isLog)
  local known = placeOfKey[name]
  if known then
    isShared = isShared or known <= declared
    return known
  end
  known = #KEYS + 1
  KEYS[known], placeOfKey[name] = name, known
  values[known] = not isLog and call('GET', name)
  return known
end

-- The numbers of an override's bands, and how the names of its buckets end; the same for all with these bands.
local limits = {}
local function limitOf(value, at)
  local digest, count = string.sub(value, at, at + 7), string.byte(value, at + 8)
  local limit = limits[digest]
  if limit then return limit end
  limit, at = { hasLog = false }, at + 9
  for j = 1, count do
    local kind, capacity, tokens, window, label
    kind, capacity, tokens, window, label, at = unpackNumbers('<BI4I4ds', value, at)
    local band = bands.new(kind, capacity, tokens, window)
    local isLog = band.algorithm.open ~= nil
    limit[j] = { band = bands.add(band), ending = '.' .. digest .. ':' .. string.gsub(label, ':', '%%3A'), isLog = isLog }
    limit.hasLog = limit.hasLog or isLog
  end
  limits[digest] = limit
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
for i = 1, (#ARGV[2] - 8) / 24 do
  local value, action, at, expiresAt = found[i], nil, nil, nil
  -- What the identity has, or else the range it is in; unless that has expired.
  for _ = 1, 2 do
    if value and value ~= '' and not action and ARGV[4 * i + 2] == '' then
      local flags = string.byte(value)
      action, at, expiresAt = flags % 8, 2, nil
      if flags % 16 >= 8 then expiresAt, at = unpackNumbers('<d', value, 2) end
      if expiresAt and expiresAt <= nowMs then action = nil end
    end
    if not action then value = ARGV[4 * i + 1] end
  end
  if action then
    applied[#applied + 1] = i - 1
    applied[#applied + 1] = value
    local base, made, isRun = ARGV[4 * i], {}, true
    local decision, first, count = unpackNumbers('<ddd', ARGV[2], i * 24 - 15)
    if action == LIMIT then
      local limit = limitOf(value, at)
      for j = 1, #limit do
        local one, next = limit[j], #KEYS + 1
        made[2 * j - 1], made[2 * j] = placeOf(base .. one.ending, one.isLog), one.band
        isRun = isRun and made[2 * j - 1] == next
      end
      isRun = isRun and not limit.hasLog
    elseif action ~= ALLOW then
      -- No key has this name.
      made[1], made[2] = placeOf(base .. ' ', false), bands.add(denial(expiresAt))
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
local function putOther(made, permits, patience)
  put(RUN, 1, #made / 2, made[1] or 1)
  for j = 2, #made, 2 do
    list[to + 1], list[to + 2], list[to + 3] = permits, patience, made[j]
    to = to + 3
  end
end

-- One PLAIN decision; `bandAt` says what is asked of which bucket, by the number of the band.
local function putPlain(count, instead, bandAt)
  local head, i = to, 1
  list[to + 1], list[to + 2], to = PLAIN, count, to + 2
  while i <= count do
    local permits, patience, key, band = bandAt(i)
    local made = instead and instead[i]
    if made then
      for j = 1, #made, 2 do put(permits, patience, made[j], made[j + 1]) end
      list[head + 2] = list[head + 2] - made.count + #made / 2
    else put(permits, patience, key, band) end
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
