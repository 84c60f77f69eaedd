-- The open reservations of a bucket, oldest first. Twin of algorithms/reservations/open-reservations.ts and
-- reserved-buckets.ts. Permits are shares of them if the bucket is counted in shares (scale.lua).
--
-- Their record follows those of the buckets: a tag (the band and the flag RESERVED), the number of entries (2 bytes), the number
-- of refunded ones (2), the first tick at which an entry ends (7), the window of fractions (6), and the entries of 41 bytes:
--   id (8), permits (6), the tick at which they were taken (7), the tick at which the entry ends (7), 1 if the permits are then
--   returned, and what is returnable: whole permits (6) and a fraction in units of 1 / window (6)
-- The amount of an entry is the least of its own and those of all later entries, so that most changes write only one of them.
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

local function isMore(whole, fraction, than, part)
  return whole > than or whole == than and fraction > part
end

-- The amounts of all entries.
local function amountsOf(list)
  local wholes, fractions = {}, {}
  local least, part = farAway, 0
  for index = sizeOf(list), 1, -1 do
    local whole, fraction = amountAt(list, index)
    if isMore(least, part, whole, fraction) then least, part = whole, fraction end
    wholes[index], fractions[index] = least, part
  end
  return wholes, fractions
end

-- The bytes of an entry, with an amount.
local function withAmount(list, index, whole, fraction)
  local at = entryBytes * (index - 1)
  return string.sub(list.bytes, at + 1, at + entryBytes - amountBytes) .. pack(amountFormat, whole, fraction)
end

local function setAmount(list, index, whole, fraction)
  local at = entryBytes * (index - 1)
  list.bytes = string.sub(list.bytes, 1, at) .. withAmount(list, index, whole, fraction)
    .. string.sub(list.bytes, at + entryBytes + 1)
end

local function minus(list, whole, fraction, lessWhole, lessFraction)
  local left = fraction - lessFraction
  if left < 0 then return whole - lessWhole - 1, left + list.window end
  return whole - lessWhole, left
end

-- Converts all fractions to the window of a rule that was edited.
local function carry(list, band)
  local wholes, fractions = amountsOf(list)
  local parts = {}
  for index = 1, #wholes do
    parts[index] = withAmount(list, index, wholes[index], carriedFraction(fractions[index], list.window, band))
  end
  list.bytes, list.window = table.concat(parts), band.window
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

-- Removes the entries from `first` to `last`.
local function cut(list, first, last)
  for index = first, list.refunded > 0 and last or 0 do
    local _, _, _, refunded = entryAt(list, index)
    list.refunded = list.refunded - refunded
  end
  list.bytes = string.sub(list.bytes, 1, entryBytes * (first - 1)) .. string.sub(list.bytes, entryBytes * last + 1)
end

-- Limits the amounts of the entries up to `last`. Removes them if nothing is left to return.
local function lower(list, last, whole, fraction)
  if last == 0 then return end
  if whole == 0 and fraction == 0 then return cut(list, 1, last) end
  local own, part = amountAt(list, last)
  if isMore(own, part, whole, fraction) then setAmount(list, last, whole, fraction) end
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
  local empty, size = 0, sizeOf(list)
  while empty < size do
    local whole, fraction = amountAt(list, empty + 1)
    if whole > 0 or fraction > 0 then break end
    empty = empty + 1
  end
  if empty > 0 then cut(list, 1, empty) end
end

-- The part of `permits` that an entry with this amount returns.
local function returnable(permits, whole, fraction)
  if whole < permits then return whole, fraction end
  return permits, 0
end

-- The amount of an entry less another one.
local function subtract(list, index, whole, fraction)
  local own, part = amountAt(list, index)
  return minus(list, own, part, whole, fraction)
end

-- Removes an entry of a bucket that refills. Returns the part of `permits` that is returnable.
local function takeReturnable(list, index, permits)
  local size = sizeOf(list)
  local whole, fraction = amountAt(list, index)
  for later = index + 1, size do
    local own, part = amountAt(list, later)
    if isMore(whole, fraction, own, part) then whole, fraction = own, part end
  end
  local returned, part = returnable(permits, whole, fraction)
  if returned > 0 or part > 0 then
    local parts, empty = { string.sub(list.bytes, 1, entryBytes * index) }, 0
    for later = index + 1, size do
      local left, rest = subtract(list, later, returned, part)
      parts[#parts + 1] = withAmount(list, later, left, rest)
      if left == 0 and rest == 0 then empty = later end
    end
    list.bytes = table.concat(parts)
    if empty > 0 then
      cut(list, 1, empty)
      return returned, part
    end
  end
  removeAt(list, index)
  lower(list, index - 1, minus(list, whole, fraction, returned, part))
  return returned, part
end

-- Returns permits to a bucket as of the tick at which they were taken.
local function returnTo(bucket, whole, fraction, grantedAt)
  local band = bucket.band
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

-- Removes an entry and returns `permits` of it to the bucket, as far as possible.
local function giveBackAt(bucket, index, permits)
  local list = bucket.reserved
  if isRefilled(bucket) then
    local whole, fraction = takeReturnable(list, index, permits)
    return returnTo(bucket, whole, fraction, now)
  end
  local _, takenAt = entryAt(list, index)
  removeAt(list, index)
  returnTo(bucket, permits, 0, takenAt)
end

-- Removes the entries that have ended, and returns the permits of those that are refunded. Takes linear time: a client may let
-- thousands of reservations end at the same time.
local function returnEnded(bucket)
  local list, isRefilling = bucket.reserved, isRefilled(bucket)
  local wholes, fractions = amountsOf(list)
  local kept, refunded, ended = {}, 0, {}
  local hasEnded = false
  local returned, returnedPart = 0, 0
  -- The amount of the last entry that is kept.
  local last, lastPart
  list.nextEnd = farAway
  for index = 1, #wholes do
    local permits, takenAt, endsAt, isRefunded = entryAt(list, index)
    local whole, fraction = 0, 0
    if isRefilling then whole, fraction = minus(list, wholes[index], fractions[index], returned, returnedPart) end
    if endsAt > now then
      list.nextEnd = math.min(list.nextEnd, endsAt)
      last, lastPart = whole, fraction
      refunded = refunded + isRefunded
      kept[#kept + 1] = withAmount(list, index, whole, fraction)
    else hasEnded = true end
    if endsAt <= now and isRefilling then
      local own, part = returnable(isRefunded * permits, whole, fraction)
      whole, fraction = minus(list, whole, fraction, own, part)
      returned, returnedPart = returned + own, returnedPart + part
      if returnedPart >= list.window then returned, returnedPart = returned + 1, returnedPart - list.window end
      if #kept > 0 and isMore(last, lastPart, whole, fraction) then
        last, lastPart = whole, fraction
        kept[#kept] = string.sub(kept[#kept], 1, entryBytes - amountBytes) .. pack(amountFormat, whole, fraction)
      end
    elseif endsAt <= now then ended[#ended + 1] = { permits = isRefunded * permits, takenAt = takenAt } end
    -- Then nothing is left to return of the earlier ones either.
    if isRefilling and whole == 0 and fraction == 0 then kept, refunded = {}, 0 end
  end
  if not hasEnded then return end
  list.bytes, list.refunded = table.concat(kept), refunded
  if isRefilling then returnTo(bucket, returned, returnedPart, now) end
  for _, entry in ipairs(ended) do returnTo(bucket, entry.permits, 0, entry.takenAt) end
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
    local wholes, fractions = amountsOf(list)
    local parts = {}
    for index = 1, #wholes do
      local permits, takenAt, endsAt, refunded = entryAt(list, index)
      local whole, fraction = wholes[index], fractions[index]
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
      local size = sizeOf(list)
      local last = size
      while last > 0 do
        local _, takenAt = entryAt(list, last)
        if takenAt <= now then break end
        last = last - 1
      end
      if last < size then
        cut(list, last + 1, size)
        bucket.isPristine = nil
        willWrite(bucket.key)
      end
    end
    if now >= list.nextEnd then returnEnded(bucket) end
  end,
}
