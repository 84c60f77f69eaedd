-- The value of a key: one record per band of its rule. Numbers are little endian.
--
--   4 bytes    tag: the number of the algorithm; plus flags: 8 wide numbers, 16 leased permits, 32 long log, 64 definition; then
--              three bytes that identify the band
--   24 bytes   four integers, whose sizes depend on the algorithm; or, if one does not fit, four doubles (wide numbers)
--   4 doubles  if permits are leased: the lots of held.lua
--   20 bytes   if the rule keeps the used fraction when it changes: the definition of scale.lua
--
-- The record of a log with few entries is its tag, the number of entries (1 byte), its timestamp (7), and per entry the tick (7)
-- and permits (3). long-logs.lua describes longer ones, hold-records.lua the record of holds.
--
-- The open reservations of a band follow in a record of their own (open-reservations.lua).
--
-- Records of other bands are kept, because processes may use two versions of a rule for a short time, and because two rules may
-- have the same abbreviation.
local HELD, SCALED, RESERVED = 16, 64, 128
local LOG, HOLDS, kindCount = 5, 7, 7
local wideBytes, lotsBytes = 36, 32
local smallEntryBytes, longLogBytes = 10, 41
local definitionBytes = 20
-- More records than any two rules have. Beyond this, records of other bands are dropped.
local maxRecords = 24
-- The number of bytes of a key with logs that are read first.
local firstBytes = 2048

-- The loaded keys by number, and the numbers of those that have changed. A loaded key has its buckets in the order of first use
-- and by id of their band, and its records in the order of the value.
local loaded, changedKeys = {}, {}

-- Leased permits; created only if a bucket has some.
local held
local function loadHeld()
  if not held then
    --@make held held.lua
  end
  return held
end

local function loadLongLogs()
  if not longLogs then
    --@make longLogs long-logs.lua
  end
  return longLogs
end

-- Open reservations; created below, if a bucket has some.
local reserved, loadReserved

-- The size of the record at an offset without its definition; nil if it is not a record.
local function recordSize(value, at, flags)
  local kind = flags % 8
  if flags == RESERVED then return at + 5 <= #value and 21 + 41 * unpackNumbers('<I2', value, at + 4) or nil end
  if kind < 1 or kind > kindCount then return nil end
  if flags == LOG then return smallLogBytes + smallEntryBytes * (string.byte(value, at + 4) or 0) end
  if flags == LOG + LONG then return longLogBytes end
  if flags == HOLDS then
    if at + holdsBytes - 1 > #value then return nil end
    local count, waiting = unpackNumbers('<I2', value, at + 4), unpackNumbers('<I2', value, at + 17)
    return holdsBytes + holdBytes * (count + waiting)
  end
  if kind == LOG or kind == HOLDS or flags >= LONG then return nil end
  return (flags % HELD >= WIDE and wideBytes or cellBytes) + (flags >= HELD and lotsBytes or 0)
end

-- Splits a value into records. Returns nil if it is not made of records.
local function recordsOf(value)
  local records, at, last = {}, 1, #value
  while at <= last do
    local tag = last - at >= 4 and unpackNumbers('<I4', value, at) or 0
    local definitionSize = tag % 128 >= SCALED and definitionBytes or 0
    local flags = tag % 256 - (definitionSize > 0 and SCALED or 0)
    local size = recordSize(value, at, flags)
    if not size then return nil end
    size = size + definitionSize
    if at + size - 1 > last then return nil end
    local record = { id = floor(tag / 256), kind = flags % 8, flags = flags, bytes = string.sub(value, at, at + size - 1) }
    if definitionSize > 0 then record.definition = string.sub(record.bytes, -definitionBytes) end
    if flags == LOG + LONG then
      record.long = loadLongLogs().read(record.bytes)
      record.long.definition = record.definition
      -- The entries follow the last record.
      if record.long.offset < last then last = record.long.offset end
    end
    records[#records + 1] = record
    at = at + size
  end
  return records, at - 1
end

-- Returns the value of a key, or its beginning if it is long; whether it is the whole value; and a problem, if any.
local function readValue(key)
  if key <= cellKeys then return values[key] or '', true end
  local value = redis.pcall('GETRANGE', KEYS[key], 0, firstBytes - 1)
  if type(value) == 'table' then return '', true, notABucket end
  return value, #value < firstBytes
end

local function loadKey(key)
  local value, isWhole, problem = readValue(key)
  -- From here on the value is out of date. No fast path accepts an empty one.
  if key <= cellKeys then values[key] = '' end
  local records, headBytes = recordsOf(value)
  -- More records may follow.
  if not isWhole and (not records or headBytes == #value) then
    value, isWhole = call('GET', KEYS[key]), true
    records, headBytes = recordsOf(value)
  end
  local holder = {
    name = KEYS[key],
    value = value,
    isWhole = isWhole,
    problem = problem or not records and notABucket or nil,
    records = records or {},
    headBytes = headBytes,
    buckets = {},
    byId = {},
  }
  loaded[key] = holder
  return holder
end

local function readLots(record)
  local lots, at = {}, #record.bytes - lotsBytes + 1
  if record.definition then at = at - definitionBytes end
  lots.earlier, lots.heldEarlier, lots.later, lots.heldLater = unpackNumbers('<dddd', record.bytes, at)
  return lots
end

-- Removes the leased permits whose lease has ended.
local function dropEnded(bucket, band)
  local lots = bucket.lots
  bucket.first, bucket.second, bucket.third, bucket.fourth =
    held.dropEnded(lots, band, now, bucket.first, bucket.second, bucket.third, bucket.fourth)
  if held.heldIn(lots) == 0 then bucket.lots = nil end
end

-- Reads the record of a band into its bucket.
local function readRecord(bucket, band, record, holder)
  bucket.record, bucket.definition, bucket.isPristine = record, record.definition, true
  if band.algorithm.open then
    bucket.first = band.algorithm.open(record, holder)
    return
  end
  local wide, _ = record.flags % HELD >= WIDE, nil
  _, bucket.first, bucket.second, bucket.third, bucket.fourth =
    unpackNumbers(wide and '<I4dddd' or band.format, record.bytes)
  if record.flags < HELD then return end
  bucket.lots = readLots(record)
  loadHeld()
  if not band.definition then dropEnded(bucket, band) end
end

-- Brings the open reservations of a bucket up to date. An unused bucket has none.
local function updateReserved(bucket)
  if not bucket.reserved then return end
  if bucket.first then reserved.update(bucket) else bucket.reserved = nil end
end

-- Returns the bucket of a band, or a problem if the value of its key is not made of buckets. `first` is nil in an unused bucket.
local function openBucket(key, band)
  local holder = loaded[key] or loadKey(key)
  if holder.problem then return nil, holder.problem end
  local bucket = holder.byId[band.id]
  if not bucket then
    bucket = { key = key }
    holder.byId[band.id], holder.buckets[#holder.buckets + 1] = bucket, bucket
    for _, record in ipairs(holder.records) do
      if record.id == band.id then
        record.isOwn = true
        if record.flags == RESERVED then bucket.reserved, bucket.reservedRecord = loadReserved().open(record.bytes), record
        -- A bucket of another algorithm counts as unused.
        elseif record.kind == band.kind then readRecord(bucket, band, record, holder) end
      end
    end
    if not bucket.first and band.start then band.start(bucket) end
  elseif bucket.band and bucket.band.kind ~= band.kind then
    bucket.first, bucket.lots, bucket.original, bucket.reserved = nil, nil, nil, nil
  end
  local isNew = not bucket.band
  bucket.band = band
  if isNew and not band.definition then updateReserved(bucket) end
  return bucket
end

local function willWrite(key)
  local holder = loaded[key]
  if holder.isChanged then return end
  holder.isChanged = true
  changedKeys[#changedKeys + 1] = key
end

-- Definitions; created only if a rule keeps the used fraction when it changes.
local scale
local function loadScale()
  if not scale then
    --@make scale scale.lua
  end
  return scale
end

local function commit(bucket, first, second, third, fourth, fifth, holdId)
  local band = bucket.band
  if bucket.reserved then reserved.observe(bucket) end
  willWrite(bucket.key)
  bucket.original = nil
  if band.algorithm.apply then bucket.first = band.algorithm.apply(bucket.first, first, second, third, fourth, fifth, holdId)
  else bucket.first, bucket.second, bucket.third, bucket.fourth = first, second, third, fourth end
end

loadReserved = function()
  if not reserved then
    --@make reserved open-reservations.lua
  end
  return reserved
end

local function packState(bucket)
  local band, lots, first, second, third, fourth =
    bucket.band, bucket.lots, bucket.first, bucket.second, bucket.third, bucket.fourth
  if band.algorithm.open then return band.algorithm.record(first, band) end
  if not lots or held.heldIn(lots) == 0 then return packCell(band, first, second, third, fourth) end
  return pack('<I4dddddddd', band.tag + WIDE + HELD, first, second, third, fourth,
    lots.earlier, lots.heldEarlier, lots.later, lots.heldLater)
end

local function packBucket(bucket)
  local record = packState(bucket)
  if not bucket.band.definition then return record end
  local definition = loadScale().pack(bucket.definition)
  if type(record) == 'string' then return record .. definition end
  record.definition = definition
  return record
end

-- Undoes a conversion that was for one operation only. Returns false if the bucket is as it was read, and its record is kept.
local function undoConversion(bucket)
  if bucket.original then loadScale().restore(bucket) end
  if not bucket.isPristine then return true end
  bucket.record.isOwn = false
  if bucket.reservedRecord then bucket.reservedRecord.isOwn = false end
  return false
end

local function expiryOf(bucket)
  local band, lots = bucket.band, bucket.lots
  local expiresAt = band.algorithm.expiresAt(band, bucket.first, bucket.second, bucket.third, bucket.fourth)
  return lots and max(expiresAt, held.refilledAt(lots, band)) or expiresAt
end

-- Writes a key: its buckets, then the records of other bands, which keep their expiry.
local function writeKey(holder)
  local parts, expiresAt, hasLong = {}, 0, false
  for _, bucket in ipairs(holder.buckets) do
    local isKept = bucket.original and not undoConversion(bucket)
    if bucket.first and not isKept then
      parts[#parts + 1] = packBucket(bucket)
      hasLong = hasLong or type(parts[#parts]) == 'table'
      expiresAt = max(expiresAt, expiryOf(bucket))
      local list = bucket.reserved
      if list and reserved.size(list) > 0 then parts[#parts + 1] = reserved.record(list, bucket.band) end
    end
  end
  if expiresAt + 1000 * expiryMargin <= now then parts, hasLong = {}, false end
  local expiry, own = expiryMs(expiresAt), #parts
  for _, record in ipairs(holder.records) do
    if not record.isOwn and #parts < maxRecords and (not record.long or longLogs.isRecent(record.long)) then
      if record.long then record.long.holder = holder end
      parts[#parts + 1] = record.long or record.bytes
      hasLong = hasLong or record.long ~= nil
    end
  end
  if #parts == 0 then return call('DEL', holder.name) end
  if #parts > own then
    local left = call('PTTL', holder.name) + (expiryOption == 'PXAT' and ceil(now / 1000) or 0)
    expiry = own == 0 and left or max(expiry, left)
  end
  if hasLong then loadLongLogs().write(holder, parts, expiry) else setValue(holder.name, table.concat(parts), expiry) end
end

local function writeChanged()
  for _, key in ipairs(changedKeys) do writeKey(loaded[key]) end
end
