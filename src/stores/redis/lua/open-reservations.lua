-- The open reservations of a bucket, oldest first. Twin of algorithms/reservations/open-reservations.ts and
-- reserved-buckets.ts. Permits are shares of them if the bucket is counted in shares (scale.lua).
--
-- Their record follows those of the buckets: a tag (the band and the flag RESERVED), the number of entries (2 bytes), the number
-- of refunded ones (2), the first tick at which an entry ends (7), the window of fractions (6), and the entries of 41 bytes:
--   id (8), permits (6), the tick at which they were taken (7), the tick at which the entry ends (7), 1 if the permits are then
--   returned, and what is returnable: whole permits (6) and a fraction in units of 1 / window (6)
local headFormat, headBytes = '<I4I2I2I7I6', 21
local entryFormat, entryBytes, amountBytes = '<I6I7I7I1I6I6', 41, 12
local idBytes, farAway = 8, 2 ^ 54
local amountFormat = '<I6I6'

local function sizeOf(list)
  return #list.bytes / entryBytes
end

local function amountAt(list, index)
  local whole, fraction = unpackNumbers(amountFormat, list.bytes, entryBytes * index - amountBytes + 1)
  return whole, fraction
end

local function setAmounts(list, first, last, amountOf)
  if first > last then return end
  local parts = { string.sub(list.bytes, 1, entryBytes * (first - 1)) }
  for index = first, last do
    local at = entryBytes * (index - 1) + 1
    parts[#parts + 1] = string.sub(list.bytes, at, at + entryBytes - amountBytes - 1)
    parts[#parts + 1] = pack(amountFormat, amountOf(index))
  end
  parts[#parts + 1] = string.sub(list.bytes, entryBytes * last + 1)
  list.bytes = table.concat(parts)
end

-- Limits the entries up to `last` to an amount.
local function lower(list, last, whole, fraction)
  local first = last
  while first >= 1 do
    local own, part = amountAt(list, first)
    if own < whole or own == whole and part <= fraction then break end
    first = first - 1
  end
  setAmounts(list, first + 1, last, function() return whole, fraction end)
end

local function minus(list, whole, fraction, lessWhole, lessFraction)
  local left = fraction - lessFraction
  if left < 0 then return whole - lessWhole - 1, left + list.window end
  return whole - lessWhole, left
end

-- Converts all fractions to the window of a rule that was edited.
local function carry(list, band)
  setAmounts(list, 1, sizeOf(list), function(index)
    local whole, fraction = amountAt(list, index)
    return whole, carriedFraction(fraction, list.window, band)
  end)
  list.window = band.window
end

local function entryAt(list, index)
  local permits, takenAt, endsAt, refunded, whole, fraction =
    unpackNumbers(entryFormat, list.bytes, entryBytes * (index - 1) + idBytes + 1)
  return permits, takenAt, endsAt, refunded, whole, fraction
end

local function removeAt(list, index)
  local _, _, _, refunded = entryAt(list, index)
  list.refunded = list.refunded - refunded
  list.bytes = string.sub(list.bytes, 1, entryBytes * (index - 1)) .. string.sub(list.bytes, entryBytes * index + 1)
end

-- The last entry with this id, or nil.
local function find(list, id)
  local found, at = nil, string.find(list.bytes, id, 1, true)
  while at do
    if at % entryBytes == 1 then found = (at - 1) / entryBytes + 1 end
    at = string.find(list.bytes, id, at + 1, true)
  end
  return found
end

local function idAt(list, index)
  return string.sub(list.bytes, entryBytes * (index - 1) + 1, entryBytes * (index - 1) + idBytes)
end

-- The permits that are missing from a bucket that refills.
local function missingFrom(bucket)
  local band = bucket.band
  local terms = bucket.lots and held.freeBand(bucket.lots, band) or band
  local _, _, _, _, _, whole, fraction =
    band.algorithm.step(terms, 0, now, 0, bucket.first, bucket.second, bucket.third, bucket.fourth)
  whole = terms.capacity - whole
  if band.kind == TOKEN_BUCKET and fraction > 0 then return whole - 1, band.window - fraction end
  return whole, 0
end

local function isRefilled(bucket)
  return bucket.band.algorithm.isRefilled
end

-- Records what is missing now. Removes entries with nothing left to return.
local function observe(bucket)
  local list = bucket.reserved
  if not isRefilled(bucket) or #list.bytes == 0 then return end
  if list.window ~= bucket.band.window then carry(list, bucket.band) end
  lower(list, sizeOf(list), missingFrom(bucket))
  while #list.bytes > 0 do
    local whole, fraction = amountAt(list, 1)
    if whole > 0 or fraction > 0 then break end
    removeAt(list, 1)
  end
end

-- Removes an entry of a bucket that refills. Returns the part of `permits` that is returnable.
local function takeReturnable(list, index, permits)
  local whole, fraction = amountAt(list, index)
  local returned, part = permits, 0
  if whole < permits then returned, part = whole, fraction end
  removeAt(list, index)
  setAmounts(list, index, sizeOf(list), function(later)
    local own, ownPart = amountAt(list, later)
    return minus(list, own, ownPart, returned, part)
  end)
  lower(list, index - 1, minus(list, whole, fraction, returned, part))
  return returned, part
end

-- Removes an entry and returns `permits` of it to the bucket, as far as possible.
local function giveBackAt(bucket, index, permits)
  local list, band = bucket.reserved, bucket.band
  local _, takenAt = entryAt(list, index)
  local whole, fraction, grantedAt = permits, 0, takenAt
  if isRefilled(bucket) then
    whole, fraction = takeReturnable(list, index, permits)
    grantedAt = now
  else removeAt(list, index) end
  bucket.isPristine = nil
  if whole == 0 and fraction == 0 then return willWrite(bucket.key) end
  local terms = bucket.lots and held.freeBand(bucket.lots, band) or band
  local applies, first, second, third, fourth, fifth =
    band.algorithm.refund(terms, whole, now, grantedAt, bucket.first, bucket.second, bucket.third, bucket.fourth)
  if fraction > 0 then
    second = second + fraction
    if second >= band.window then first, second = first + 1, second - band.window end
  end
  if applies then commit(bucket, first, second, third, fourth, fifth) else willWrite(bucket.key) end
end

return {
  maxEntries = 10000,
  size = sizeOf,
  observe = observe,

  open = function(bytes)
    local list = {}
    local _
    _, _, list.refunded, list.nextEnd, list.window = unpackNumbers(headFormat, bytes)
    list.bytes = string.sub(bytes, headBytes + 1)
    return list
  end,

  record = function(list, band)
    return pack(headFormat, band.id * 256 + RESERVED, sizeOf(list), list.refunded, list.nextEnd, list.window) .. list.bytes
  end,

  -- Adds an entry whose permits have just been taken.
  add = function(bucket, id, permits, expiresAt, isRefunded, keptTicks)
    local band, list = bucket.band, bucket.reserved
    local window = type(band.window) == 'number' and band.window or 0
    if not list then
      list = { refunded = 0, nextEnd = farAway, window = window, bytes = '' }
      bucket.reserved = list
    end
    observe(bucket)
    local whole, fraction, lostAt = 0, 0, farAway
    if isRefilled(bucket) then whole, fraction = missingFrom(bucket)
    -- After two windows, no window contains the permits any more. The starts of a calendar's periods are a list.
    elseif type(band.window) == 'number' then lostAt = now + 2 * band.window
    else lostAt = now + 2 * (band.window[#band.window] - band.window[1]) end
    local refunded = isRefunded and expiresAt < lostAt
    local endsAt = refunded and expiresAt or math.min(lostAt, expiresAt + keptTicks)
    list.bytes = list.bytes .. id .. pack(entryFormat, permits, now, endsAt, refunded and 1 or 0, whole, fraction)
    list.refunded, list.nextEnd = list.refunded + (refunded and 1 or 0), math.min(list.nextEnd, endsAt)
    willWrite(bucket.key)
  end,

  -- The list for a bucket in which `from` shares have become `to` shares.
  scaled = function(list, to, from)
    local parts = {}
    for index = 1, sizeOf(list) do
      local permits, takenAt, endsAt, refunded, whole, fraction = entryAt(list, index)
      local scaledWhole, rest = (mulDiv(to, whole, from)), 0
      -- A product that is not exact counts as 0, because nothing must be returned twice.
      if fraction * to < exactLimit then rest = floor(fraction * to / from) end
      local carried = list.window > 0 and floor(rest / list.window) or 0
      parts[index] = idAt(list, index) .. pack(entryFormat, (mulDiv(to, permits, from)), takenAt, endsAt, refunded,
        scaledWhole + carried, rest - carried * list.window)
    end
    return { refunded = list.refunded, nextEnd = list.nextEnd, window = list.window, bytes = table.concat(parts) }
  end,

  -- Removes the entry with this id and returns up to `permits` of it to the bucket.
  giveBack = function(bucket, id, permits)
    local index = find(bucket.reserved, id)
    if not index then return end
    observe(bucket)
    index = find(bucket.reserved, id)
    if index then giveBackAt(bucket, index, permits) end
  end,

  -- Brings the entries of a bucket that was just read up to date: returns the permits of those that have expired.
  update = function(bucket)
    local list = bucket.reserved
    observe(bucket)
    if not isRefilled(bucket) then
      -- If the clock has stepped back, it is unknown which window contains the permits now.
      while #list.bytes > 0 do
        local _, takenAt = entryAt(list, sizeOf(list))
        if takenAt <= now then break end
        removeAt(list, sizeOf(list))
        bucket.isPristine = nil
        willWrite(bucket.key)
      end
    end
    if now < list.nextEnd then return end
    local ended = {}
    list.nextEnd = farAway
    for index = 1, sizeOf(list) do
      local permits, _, endsAt, refunded = entryAt(list, index)
      if endsAt <= now then ended[#ended + 1] = { id = idAt(list, index), permits = refunded * permits }
      elseif endsAt < list.nextEnd then list.nextEnd = endsAt end
    end
    for _, entry in ipairs(ended) do
      -- Nothing may be returnable any more after the others.
      local index = find(list, entry.id)
      if index then giveBackAt(bucket, index, entry.permits) end
    end
  end,
}
