-- Finds the keys and bands that replace those of overridden identities, so that the operations need no knowledge of overrides.
-- Runs before them, and only if an override may apply. `found` contains the overrides by index of the lookup.
--
-- ARGV[3]   a JSON array of numbers: 1 if an operation uses the key of an override directly, else 0; then per lookup: the number of its
--           decision, of its item there, of its first band, its number of bands, and its key
-- ARGV[4…]  the identity of each lookup; then, if any is an address in a range with an override, that override per lookup, or ''
-- Result    per override that applies: the index of its lookup from 0, and the override
--
-- overrides/encoding.ts describes the bytes of an override.
local LIMIT, ALLOW = 1, 2
local nowMs, lastBand = now / 1000, bandCount

-- Numbers of added keys by name; of declared keys too if the key of an override may be among them.
local keyNumbers = {}
if places[1] == 1 then
  for i, name in ipairs(KEYS) do keyNumbers[name] = i end
end

local function keyNumberOf(name)
  if not keyNumbers[name] then
    KEYS[#KEYS + 1] = name
    keyNumbers[name] = #KEYS
  end
  return keyNumbers[name]
end

-- Gives unused buckets of the band a starting balance: the rest of the capacity counts as taken at the tick `at`. Until it
-- would have been refilled, written buckets are kept, because a missing bucket would start with the balance again.
local function applyBalance(band, balance, at)
  local algorithm, spent = band.algorithm, band.capacity - balance
  if spent <= 0 then return end
  local function start(bucket)
    local _, _, _, _, _, first, second, third, fourth, fifth = algorithm.step(band, spent, at, 0)
    if algorithm.apply then bucket.first = algorithm.apply(nil, first, second, third, fourth, fifth)
    else bucket.first, bucket.second, bucket.third, bucket.fourth = first, second, third, fourth end
  end
  local unused = {}
  start(unused)
  local endsAt = algorithm.expiresAt(band, unused.first, unused.second, unused.third, unused.fourth)
  if endsAt <= now then return end
  local startedAlgorithm = {}
  for name, part in pairs(algorithm) do startedAlgorithm[name] = part end
  startedAlgorithm.expiresAt = function(...) return max(endsAt, algorithm.expiresAt(...)) end
  band.algorithm, band.start = startedAlgorithm, start
end

-- Returns the numbers of the band at this offset of an override, the offset after it, and whether another band follows.
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
  return bits % 8, capacity, tokens, window, at, bits >= 128
end

-- The bands of an override and the suffix of its key, shared by all identities with the same override of a rule. The rule has
-- `count` bands from the number `first`; an override without bands uses these.
local limits = {}
local function limitOf(value, at, first, count)
  local name = first .. ' ' .. value
  if limits[name] then return limits[name] end
  local flags, start = string.byte(value), at
  local balance, balanceAt
  if flags % 64 >= 32 then balance, balanceAt, at = unpackNumbers('<I4I6', value, at) end
  local limit, firstId = { first = lastBand + 1, count = 0 }, bandAt(first).id
  local function add(kind, capacity, tokens, window, definitionTerms)
    local flags = definitionTerms and 64 or 0
    local band = newBand((firstId + limit.count) % 2 ^ 24 * 256 + kind + flags, definitionTerms or capacity, tokens, window)
    -- The balance may have been written by a process whose clock is ahead of this one.
    if balance then applyBalance(band, balance, math.min(now, balanceAt * 1000)) end
    limit.count, lastBand = limit.count + 1, lastBand + 1
    bands[lastBand] = band
  end
  local more = flags % 8 >= 4
  for number = first, more and 0 or first + count - 1 do
    local band = bandAt(number)
    add(band.kind, band.capacity, band.tokens, band.window, band.definitionTerms)
  end
  while more do
    local kind, capacity, tokens, window
    kind, capacity, tokens, window, at, more = readBand(value, at)
    -- The calendar of a band of the rule.
    if window == 0 then tokens, window = capacity, bandAt(first + math.min(tokens, count) - 1).window end
    add(kind, capacity, tokens, window)
  end
  limit.suffix = '.' .. string.sub(redis.sha1hex(string.sub(value, start, at - 1)), 1, 10)
  limits[name] = limit
  return limit
end

-- A band that denies every request until the override expires. It has no bucket.
local function denyingBand(expiresAt)
  local retryAfter = expiresAt and ceil(expiresAt * 1000) - now or never
  local resetAt = expiresAt and ceil(expiresAt * 1000) or now
  return { hasNoBucket = true, algorithm = { step = function() return retryAfter, 0, 0, resetAt, false end } }
end

-- Returns the override of the identity itself, or else of its address range, unless expired: its value, action, the offset of
-- its limit, and its expiry.
local function overrideAt(i)
  for _, value in ipairs({ found[i] or '', ARGV[3 + lookups + i] or '' }) do
    if value ~= '' then
      local flags, at, expiresAt = string.byte(value), 2, nil
      if flags % 16 >= 8 then expiresAt, at = unpackNumbers('<I6', value, 2) end
      if not expiresAt or expiresAt > nowMs then return value, flags % 4, at, expiresAt end
    end
  end
end

local applied = {}
for i = 1, lookups do
  local value, action, at, expiresAt = overrideAt(i)
  if value then
    applied[#applied + 1] = i - 1
    applied[#applied + 1] = value
    local number, item, first, count, key = unpack(places, 5 * i - 3, 5 * i + 1)
    local replacement = { value = value, key = key, first = first, count = 0, rule = { key = key, first = first, count = count } }
    if action == LIMIT then
      local limit = limitOf(value, at, first, count)
      replacement.key = keyNumberOf(KEYS[key] .. limit.suffix)
      replacement.first, replacement.count = limit.first, limit.count
    elseif action ~= ALLOW then
      lastBand = lastBand + 1
      bands[lastBand] = denyingBand(expiresAt)
      replacement.first, replacement.count = lastBand, 1
    end
    replacements = replacements or {}
    replacements[number] = replacements[number] or {}
    replacements[number][item] = replacement
  end
end
if applied[1] then return applied end
