-- Replaces the bands of overridden keys in `numbers`, so that the operations need no knowledge of overrides. Runs before them,
-- and only if an override was found. `found` contains the overrides by index of the lookup.
--
-- ARGV[3]   doubles: 1 if an operation uses the bucket of an override directly, else 0; then per lookup: the number of its
--           operation, the position of its first band in the operation, its number of bands, the number of its first band (the
--           others are consecutive), and the index of its first key
-- ARGV[4…]  the key of each lookup; then, if any is an address in a range with an override, that override per lookup, or ''
-- Result    per override that applies: the index of its lookup from 0, and the override
--
-- overrides/encoding.ts describes the bytes of an override.
local LIMIT, ALLOW = 1, 2
local nowMs = now / 1000
values = values or {}
if not bands then
  --@make bands bands.lua
end

-- Indexes of added keys by name; of declared keys too if an override's bucket may be among them.
local keyIndexes, declaredKeys, isShared = {}, #KEYS, false
if unpackNumbers('<d', ARGV[3]) == 1 then
  for i, name in ipairs(KEYS) do keyIndexes[name] = i end
end

local function keyIndexOf(name, isLog, initial)
  local index = keyIndexes[name]
  if index then isShared = isShared or index <= declaredKeys
  else
    index = #KEYS + 1
    KEYS[index], keyIndexes[name] = name, index
    values[index] = not isLog and call('GET', name)
  end
  if initial and not values[index] then values[index] = initial end
  return index
end

-- Gives unused buckets of the band a starting balance: the rest of the capacity counts as taken at the tick `at`. Until it
-- would have been refilled, written buckets are kept, because a missing bucket would start with the balance again.
local function applyBalance(band, balance, at)
  local algorithm, spent = band.algorithm, band.capacity - balance
  if spent <= 0 then return end
  local _, _, _, _, _, first, second, third, fourth, fifth = algorithm.step(band, spent, at, 0)
  local isLog = algorithm.open ~= nil
  local function log() return algorithm.apply(nil, first, second, third, fourth, fifth) end
  local endsAt = algorithm.expiresAt(band, isLog and log() or first, second, third, fourth)
  if endsAt <= now then return end
  local startedAlgorithm = {}
  for name, part in pairs(algorithm) do startedAlgorithm[name] = part end
  startedAlgorithm.expiresAt = function(...) return math.max(endsAt, algorithm.expiresAt(...)) end
  if isLog then
    startedAlgorithm.open = function(name)
      local kind, found = algorithm.open(name)
      if kind == 0 then return band.kind, log() end
      return kind, found
    end
  else
    band.initial = pack('<Bdddd', band.kind, first, second, third, fourth)
  end
  band.algorithm, band.endsAtReset = startedAlgorithm, nil
end

-- Returns the band at this offset of an override, the offset after it, and whether another band follows.
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

-- The bands of an override and the suffix of its bucket keys, shared by all keys with the same override. An override without
-- bands uses those of the rule: `count` bands from the number `first`.
local limits = {}
local function limitOf(value, at, first, count)
  local flags = string.byte(value)
  local hasBands, start = flags % 8 >= 4, at
  if limits[value] then return limits[value] end
  local balance, balanceAt
  if flags % 64 >= 32 then balance, balanceAt, at = unpackNumbers('<I4I6', value, at) end
  local limit = { hasLog = false }
  local function add(band)
    -- The balance may have been written by a process whose clock is ahead of this one.
    if balance then applyBalance(band, balance, math.min(now, balanceAt * 1000)) end
    local isLog = band.algorithm.open ~= nil
    limit[#limit + 1] = { band = bands.add(band), initial = band.initial, isLog = isLog }
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
  limit.suffix = '.' .. string.sub(redis.sha1hex(string.sub(value, start, at - 1)), 1, 10) .. ':'
  -- Without bands of its own, the result depends on the rule.
  if hasBands then limits[value] = limit end
  return limit
end

-- A band that denies every request until the override expires.
local function denyingBand(expiresAt)
  local retryAfter = expiresAt and ceil(expiresAt * 1000) - now or never
  local resetAt = expiresAt and ceil(expiresAt * 1000) or now
  local function step() return retryAfter, 0, 0, resetAt, false end
  return { kind = -1, step = step, algorithm = { step = step } }
end

-- By number of the operation and position of the first band: the replacing bands, each as key index and band number.
local replacements, applied = {}, {}
for i = 1, lookups do
  local value, action, at, expiresAt = found and found[i], nil, nil, nil
  -- The override of the key itself, or else of its address range, unless expired.
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
    -- `base` is the bucket key without the number of the band.
    local base, replacement, isRun = string.match(KEYS[bucket], '^(.*):'), {}, true
    if action == LIMIT then
      local limit = limitOf(value, at, number, count)
      for j = 1, #limit do
        local added, nextIndex = limit[j], #KEYS + 1
        replacement[2 * j - 1] = keyIndexOf(base .. limit.suffix .. (j - 1), added.isLog, added.initial)
        replacement[2 * j] = added.band
        isRun = isRun and replacement[2 * j - 1] == nextIndex
      end
      isRun = isRun and not limit.hasLog
    elseif action ~= ALLOW then
      -- No bucket has this key.
      replacement[1], replacement[2] = keyIndexOf(base .. ' ', false, nil), bands.add(denyingBand(expiresAt))
    end
    replacement.count, replacement.isRun = count, isRun
    replacements[decision] = replacements[decision] or {}
    replacements[decision][first] = replacement
  end
end
if not applied[1] then return end

local output, entries, readAt, writeAt = {}, 0, position, position
for i = 1, position do output[i] = numbers[i] end

local function copy(count)
  for _ = 1, count do
    readAt, writeAt = readAt + 1, writeAt + 1
    output[writeAt] = numbers[readAt]
  end
end

local function append(first, second, third, fourth)
  output[writeAt + 1], output[writeAt + 2], output[writeAt + 3], output[writeAt + 4] = first, second, third, fourth
  writeAt = writeAt + 4
end

-- Appends unchanged decisions of a run.
local function appendRun(decisions, count, key, offset)
  if decisions == 0 then return end
  entries = entries + 1
  append(RUN, decisions, count, key)
  for i = offset + 1, offset + 3 * count do
    writeAt = writeAt + 1
    output[writeAt] = numbers[i]
  end
end

-- Appends one decision of a run whose bands are all replaced.
local function appendReplacement(replacement, permits, maxWaitTicks)
  append(RUN, 1, #replacement / 2, replacement[1] or 1)
  for j = 2, #replacement, 2 do
    output[writeAt + 1], output[writeAt + 2], output[writeAt + 3] = permits, maxWaitTicks, replacement[j]
    writeAt = writeAt + 3
  end
end

-- Appends one PLAIN decision. `termsOf` returns permits, maxWaitTicks, key and band by position.
local function appendPlain(count, replaced, termsOf)
  local start, i = writeAt, 1
  output[writeAt + 1], output[writeAt + 2], writeAt = PLAIN, count, writeAt + 2
  while i <= count do
    local permits, maxWaitTicks, key, band = termsOf(i)
    local replacement = replaced and replaced[i]
    if replacement then
      for j = 1, #replacement, 2 do append(permits, maxWaitTicks, replacement[j], replacement[j + 1]) end
      output[start + 2] = output[start + 2] - replacement.count + #replacement / 2
    else append(permits, maxWaitTicks, key, band) end
    i = i + (replacement and replacement.count or 1)
  end
end

local decision = 0
for _ = 1, entryCount do
  local operation = numbers[readAt + 1]
  if operation == RUN then
    local decisions, count, key, offset = numbers[readAt + 2], numbers[readAt + 3], numbers[readAt + 4], readAt + 4
    local unchanged = 0
    for _ = 1, decisions do
      decision = decision + 1
      local replaced = replacements[decision]
      -- If another operation uses a bucket of an override directly, no decision is known to be exclusive.
      if replaced or isShared then
        appendRun(unchanged, count, key - unchanged * count, offset)
        unchanged, entries = 0, entries + 1
        local replacement = replaced and replaced[1]
        if replacement and replacement.count == count and replacement.isRun and not isShared then
          appendReplacement(replacement, numbers[offset + 1], numbers[offset + 2])
        else
          appendPlain(count, replaced, function(i)
            local bandOffset = offset + 3 * i - 3
            return numbers[bandOffset + 1], numbers[bandOffset + 2], key + i - 1, numbers[bandOffset + 3]
          end)
        end
      else unchanged = unchanged + 1 end
      key = key + count
    end
    appendRun(unchanged, count, key - unchanged * count, offset)
    readAt = offset + 3 * count
  else
    decision, entries = decision + 1, entries + 1
    local replaced = replacements[decision]
    if operation == PLAIN then
      local count, offset = numbers[readAt + 2], readAt + 2
      appendPlain(count, replaced, function(i) return unpack(numbers, offset + 4 * i - 3, offset + 4 * i) end)
      readAt = offset + 4 * count
    else
      local items, first = numbers[readAt + 3], 1
      copy(3)
      -- Its buckets may now be logs, or be used by another operation.
      if replaced or isShared then output[writeAt - 1] = 0 end
      for _ = 1, items do
        copy(4)
        local bandsHere, countAt, replacement = numbers[readAt], writeAt, replaced and replaced[first]
        -- A reset removes the rule's buckets as well as those of the override.
        if not replacement or operation == RESET then copy(3 * bandsHere) else readAt = readAt + 3 * bandsHere end
        if replacement then
          output[countAt] = #replacement / 2 + (operation == RESET and bandsHere or 0)
          for j = 1, #replacement, 2 do
            output[writeAt + 1], output[writeAt + 2], output[writeAt + 3] = replacement[j], replacement[j + 1], -1
            writeAt = writeAt + 3
          end
        end
        first = first + bandsHere
      end
    end
  end
end
numbers, entryCount = output, entries
return applied
