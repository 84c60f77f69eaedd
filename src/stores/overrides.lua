-- Puts what overrides say in the place of what was asked: from there on a decision does not know that there was one. Runs
-- before the decisions, only if an override was found; `found` has them, by the number of the lookup.
--
-- ARGV[2]   doubles: whether a decision names a bucket of an override by itself; then per lookup: where its first band is
--           among the numbers, how many bands it has, how many numbers each is (0: the override's bands come behind its
--           own), where its decision begins
-- ARGV[3…]  per lookup: the identity; how the names of its buckets begin; an override in case it has none, or ''; and the
--           one whose buckets are asked for already, or ''
-- Result    per lookup that has one: its number from 0, and the override
--
-- The bytes of an override are described in override-value.ts.
local LIMIT, ALLOW = 1, 2
local nowMs = now / 1000
values = values or {}

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

local function bandOf(kind, capacity, tokens, window)
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
  return {
    kind = kind,
    capacity = capacity,
    tokens = tokens,
    window = window,
    algorithm = algorithm,
    step = algorithm.step,
    endsAtReset = algorithm.endsAtReset,
  }
end

-- Where among `bands` those of an override are, and how the names of its buckets end; the same for all with these bands.
local limits = {}
local function limitOf(value, at)
  local digest, count = string.sub(value, at, at + 7), string.byte(value, at + 8)
  local limit = limits[digest]
  if limit then return limit end
  limit, at = { hasLog = false }, at + 9
  for j = 1, count do
    local kind, capacity, tokens, window, label
    kind, capacity, tokens, window, label, at = unpackNumbers('<BI4I4ds', value, at)
    local band = bandOf(kind, capacity, tokens, window)
    local isLog = band.algorithm.open ~= nil
    bands[#bands + 1] = band
    limit[j] = { band = #bands, ending = '.' .. digest .. ':' .. string.gsub(label, ':', '%%3A'), isLog = isLog }
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

-- By number of the lookup: the bands that take the place of the rule's, or come behind them. If each decision has as
-- many as before, the numbers are changed where they are.
local insteadOf, applied, isRebuilt = {}, {}, false
for i = 1, (#ARGV[2] - 8) / 32 do
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
    local base, made = ARGV[4 * i], {}
    local first, count, size, head = unpackNumbers('<dddd', ARGV[2], i * 32 - 23)
    if action == LIMIT then
      local limit = limitOf(value, at)
      for j = 1, #limit do
        local one = limit[j]
        made[2 * j - 1], made[2 * j] = placeOf(base .. one.ending, one.isLog), one.band
      end
      if limit.hasLog then numbers[head + 1] = 0 end
    elseif action ~= ALLOW then
      bands[#bands + 1] = denial(expiresAt)
      -- No key has this name.
      made[1], made[2] = placeOf(base .. ' ', false), #bands
    end
    insteadOf[first], made.count = made, count
    if #made ~= 2 * count or size == 0 then isRebuilt = true end
  end
end
if not applied[1] then return end

if not isRebuilt then
  for i = 1, (#ARGV[2] - 8) / 32 do
    local first, count, size = unpackNumbers('<ddd', ARGV[2], i * 32 - 23)
    local made = insteadOf[first]
    -- Of a plain charge, permits and patience come before the key and the band.
    local at = first + size - (size == 4 and 2 or 3)
    for j = 1, made and count or 0 do
      numbers[at], numbers[at + 1] = made[2 * j - 1], made[2 * j]
      at = at + size
    end
  end
end

local list, from, to = {}, place, place
local function copy(count)
  for _ = 1, count do
    from, to = from + 1, to + 1
    list[to] = numbers[from]
  end
end
if isRebuilt or isShared then
  for i = 1, place do list[i] = numbers[i] end
  for _ = 1, decisionCount do
    local what, count, head = numbers[from + 1], numbers[from + 3], to
    copy(3)
    -- Another decision may name one of these buckets by itself.
    if isShared then list[head + 2] = 0 end
    while what == PLAIN and count > 0 do
      local made = isRebuilt and insteadOf[from + 1]
      if made then
        local permits, patience, replaced = numbers[from + 1], numbers[from + 2], made.count
        from, count = from + 4 * replaced, count - replaced
        for j = 1, #made, 2 do
          list[to + 1], list[to + 2], list[to + 3], list[to + 4] = permits, patience, made[j], made[j + 1]
          to = to + 4
        end
        list[head + 3] = list[head + 3] - replaced + #made / 2
      else
        copy(4)
        count = count - 1
      end
    end
    for _ = 1, what == PLAIN and 0 or count do
      copy(4)
      local here, counted, made = numbers[from], to, isRebuilt and insteadOf[from + 1]
      -- Whoever forgets an identity forgets all of it.
      if not made or what == RESET then copy(3 * here) else from = from + 3 * here end
      if made then
        list[counted] = #made / 2 + (what == RESET and here or 0)
        for j = 1, #made, 2 do
          list[to + 1], list[to + 2], list[to + 3] = made[j], made[j + 1], -1
          to = to + 3
        end
      end
    end
  end
  numbers = list
end
return applied
