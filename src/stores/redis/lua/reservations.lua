-- The operations RESERVE and END of operations.lua. RESERVE is a CHARGE that is recorded, END replaces its permits by the actual ones.
--
-- Each has, after its items: the number of the key of its record, the two numbers of its id, and
--   RESERVE  the ticks until it expires, 1 if it is then refunded, and its description
--   END      what ends it (0 a settlement, 1 a cancellation, 2 an abortion, which removes the record), and 1 if an expired reservation
--            cannot be ended. The third number of its items is the number of reserved permits
-- An operation with a problem has no results, but a message:
--   RESERVATION KNOWN <record>   the reservation exists already, or has ended
--   RESERVATION UNKNOWN, RESERVATION EXPIRED, RESERVATION FULL
--
-- A record is expiresAt (double), 0 if open, 1 if settled and 2 if canceled, 1 if it is refunded when it expires (1 byte each), the
-- number of bytes (4 each) of the description, of the results of RESERVE, of the overrides and of the results of END, and these.
-- Results are doubles: now, and the results of the decision. Overrides are the number of an item (2 bytes), the number of bytes
-- of its override (4), and the override.
local recordFormat, recordBytes = '<dI1I1I4I4I4I4', 26
local ABORT = 2
-- How long an expired reservation is still known as expired, as in core/reservations/reservation.ts.
local expiredTicks = 60000000

local function packResults(from)
  local packed = { pack('<d', now) }
  for i = from + 1, length do packed[#packed + 1] = pack('<d', results[i]) end
  return table.concat(packed)
end

local function packRecord(record)
  return pack(recordFormat, record.expiresAt, record.status, record.refunded, #record.text, #record.made, #record.overrides,
    #record.ended) .. record.text .. record.made .. record.overrides .. record.ended
end

local function readRecord(value)
  local record = {}
  local textBytes, madeBytes, overrideBytes
  record.expiresAt, record.status, record.refunded, textBytes, madeBytes, overrideBytes = unpackNumbers(recordFormat, value)
  local at = recordBytes + textBytes
  record.text, record.made = string.sub(value, recordBytes + 1, at), string.sub(value, at + 1, at + madeBytes)
  record.overrides = string.sub(value, at + madeBytes + 1, at + madeBytes + overrideBytes)
  return record
end

-- The record of a reservation, or nil; and the problem of its key, if any. Redis keeps it for longer if the caller provides the time.
local function findRecord(name)
  local value = redis.pcall('GET', name)
  if not value then return nil end
  if type(value) == 'table' or #value < recordBytes then return nil, name .. ' holds something that is not a reservation' end
  return now < unpackNumbers('<d', value) + expiredTicks and value or nil
end

local function failWith(problem)
  fail('RESERVATION ' .. problem)
end

-- The overrides of the items of this decision.
local function packOverrides(items)
  local parts = {}
  for item = 1, items do
    local replacement = replacementOf(item)
    if replacement then parts[#parts + 1] = pack('<I2I4', item, #replacement.value) .. replacement.value end
  end
  return table.concat(parts)
end

local function isFull(count)
  for i = 1, count do
    local list = buckets[i].reserved
    if list and reserved.size(list) >= reserved.maxEntries then return true end
  end
  return false
end

local function reserve(items, count, name, id, ttl, refunded, text)
  local known, problem = findRecord(name)
  if problem then return fail(problem) end
  if known then return failWith('KNOWN ' .. known) end
  if isFull(count) then return failWith('FULL') end
  local before, i, estimates = length, 0, {}
  for j = 1, count do estimates[j] = permitsOf[j] end
  chargeAll(items, false)
  if results[before + 1] == DENIED then return end
  local expiresAt = now + ttl
  for item = 1, items do
    while i < ends[item] do
      i = i + 1
      if allowing[item] and estimates[i] > 0 and not bandsOf[i].hasNoBucket then
        loadReserved().add(buckets[i], id, estimates[i] * sharesOf[i], expiresAt, refunded == 1, expiredTicks)
      end
    end
  end
  local record = { expiresAt = expiresAt, status = 0, refunded = refunded, text = text, made = packResults(before) }
  record.overrides, record.ended = packOverrides(items), ''
  setValue(name, packRecord(record), expiryMs(expiresAt + expiredTicks))
end

-- Replaces the permits of band `i` by the actual ones.
local function replace(i, id, estimate)
  local bucket, actual = buckets[i], permitsOf[i]
  if bucket.reserved then reserved.giveBack(bucket, id, max(0, estimate - actual) * sharesOf[i]) end
  if actual > estimate then forceBand(i, actual - estimate) end
  oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i] = bucket.first, bucket.second, bucket.third, bucket.fourth
end

local function finish(items, count, name, id, status, isTimed)
  local value, problem = findRecord(name)
  if problem then return fail(problem) end
  if not value then return failWith('UNKNOWN') end
  local record, before, i = readRecord(value), length, 0
  if record.status ~= 0 then return failWith('KNOWN ' .. value) end
  local isExpired = now >= record.expiresAt
  if isExpired and isTimed == 1 then return failWith('EXPIRED') end
  for item = 1, items do
    -- The permits of a reservation that has expired may have been returned before.
    local estimate = isExpired and record.refunded == 1 and 0 or shadows[item]
    while i < ends[item] do
      i = i + 1
      replace(i, id, estimate)
    end
  end
  for j = 1, count do readBack(j) end
  emit(GRANTED)
  emitBands(count)
  if status == ABORT then return call('DEL', name) end
  record.status, record.ended = status + 1, packResults(before)
  call('SET', name, packRecord(record), 'KEEPTTL')
end

return {
  decide = function(operation)
    local items, count, problem = readItems(operation)
    local key, high, low, first, second, text = unpack(numbers, position + 1, position + 6)
    position = position + (operation == RESERVE and 6 or 5)
    local name, id = KEYS[key], pack('<I4I4', high, low)
    if problem then fail(problem)
    elseif operation == RESERVE then reserve(items, count, name, id, first, second, text)
    else finish(items, count, name, id, first, second) end
  end,
}
