-- Buckets of rules with `onRuleChange: SCALE`, which keep their used fraction when the definition of their band changes. Twin of
-- algorithms/scale/scaled-buckets.ts. A record ends with the definition under which it was written: capacity, tokens, window and
-- the shares of a full bucket.
--@include ../../../algorithms/scale/shares.lua
--@include ../../../algorithms/scale/scale-cells.lua
local convertLog

local function definitionOf(bytes)
  local capacity, tokens, window, shares = unpackNumbers(definitionFormat, bytes)
  return { capacity = capacity, tokens = tokens, window = window, shares = shares }
end

local function newDefinition(to, shares)
  return { capacity = to.capacity, tokens = to.tokens, window = to.window, shares = shares }
end

-- The band with its permits counted in shares.
local function inShares(band, perPermit)
  if perPermit == 1 then return band end
  band.inShares = band.inShares or {}
  local scaled = band.inShares[perPermit]
  if not scaled then
    scaled = {}
    for name, part in pairs(band) do scaled[name] = part end
    scaled.capacity, scaled.tokens = band.capacity * perPermit, band.tokens * perPermit
    band.inShares[perPermit] = scaled
  end
  return scaled
end

-- The band under the definition of a bucket, in shares.
local function bandOf(band, definition)
  local isCalendar, tokens = definition.window >= calendars, definition.tokens * (definition.shares / definition.capacity)
  local from = newBand(band.kind, definition.shares, tokens, isCalendar and band.window or definition.window)
  from.windows = definition.window
  return from
end

local function keepOriginal(bucket)
  bucket.original = {
    bucket.first, bucket.second, bucket.third, bucket.fourth, bucket.lots, bucket.definition, bucket.band, bucket.isPristine,
    bucket.reserved,
  }
end

local function restore(bucket)
  bucket.first, bucket.second, bucket.third, bucket.fourth, bucket.lots, bucket.definition, bucket.band, bucket.isPristine,
    bucket.reserved = unpack(bucket.original, 1, 9)
  bucket.original = nil
end

-- Brings open reservations up to date under the band that the bucket has had until now.
local function updateUnder(bucket, band)
  local current = bucket.band
  bucket.band = band
  updateReserved(bucket)
  bucket.band = current
end

local function isUnused(bucket, band)
  return band.algorithm.expiresAt(band, bucket.first, bucket.second, bucket.third, bucket.fourth) <= now
end

-- Leased permits count as used, so they are scaled too.
local function convertLots(lots, shares, from)
  return {
    earlier = lots.earlier,
    later = lots.later,
    heldEarlier = scaleUp(lots.heldEarlier, shares, from.capacity),
    heldLater = scaleUp(lots.heldLater, shares, from.capacity),
  }
end

local function convert(bucket, from, to, shares)
  if from.kind == LOG then
    if not convertLog then
      --@make convertLog ../../../algorithms/scale/scale-log.lua
    end
    bucket.first = convertLog(bucket.first, from, shares, to.window)
    return
  end
  local old = from
  if bucket.lots then
    -- The state is stepped to now with the capacity that is not leased.
    local free = held.freeBand(bucket.lots, from)
    local _
    _, _, _, _, _, bucket.first, bucket.second, bucket.third, bucket.fourth =
      from.algorithm.step(free, 0, now, 0, bucket.first, bucket.second, bucket.third, bucket.fourth)
    bucket.lots = convertLots(bucket.lots, shares, from)
  end
  bucket.first, bucket.second, bucket.third, bucket.fourth =
    scaleCells(old, shares, to.window, bucket.first, bucket.second, bucket.third, bucket.fourth)
end

-- Prepares a bucket for a band, which `converts` it if it was written under another definition; otherwise only for this
-- operation. Returns the band in shares, and the shares of a permit.
local function open(bucket, band, converts)
  if bucket.original then restore(bucket) end
  local to, from = band.definition, bucket.definition
  if type(from) == 'string' then from = definitionOf(from) end
  bucket.definition = from
  if not bucket.first or not from then
    bucket.definition = newDefinition(to, to.capacity)
    updateUnder(bucket, band)
    return band, 1
  end
  local isSame = from.capacity == to.capacity and from.tokens == to.tokens and from.window == to.window
  if isSame and from.shares == from.capacity then
    if bucket.lots and bucket.isPristine then dropEnded(bucket, band) end
    updateUnder(bucket, band)
    return band, 1
  end
  local isOtherCalendar = from.window ~= to.window and max(from.window, to.window) >= calendars
  if from.shares == 0 or to.capacity == 0 or isOtherCalendar then
    -- A capacity of 0 and periods of another calendar have no used fraction. Under a new capacity of 0, nothing is charged, and the
    -- bucket under the old definition is kept.
    if to.capacity == 0 or not converts then keepOriginal(bucket) else willWrite(bucket.key) end
    bucket.first, bucket.lots, bucket.reserved, bucket.definition = nil, nil, nil, newDefinition(to, to.capacity)
    return band, 1
  end
  local largest = max(band.capacity, band.tokens, to.tokens)
  local shares = sharesFor(from.shares, to.capacity, largest, band.kind == LOG and maxLogShares or maxShares)
  local perPermit = shares / to.capacity
  local isConverted = isSame and shares == from.shares
  local source = isConverted and inShares(band, perPermit) or bandOf(band, from)
  if bucket.lots and bucket.isPristine then dropEnded(bucket, source) end
  updateUnder(bucket, source)
  if not bucket.lots and isUnused(bucket, source) then
    if not converts then keepOriginal(bucket) end
    bucket.first, bucket.reserved, bucket.definition = nil, nil, newDefinition(to, to.capacity)
    return band, 1
  end
  if isConverted then return source, perPermit end
  if not converts then keepOriginal(bucket) end
  convert(bucket, source, to, shares)
  if bucket.reserved and shares ~= from.shares then
    bucket.reserved = reserved.scaled(bucket.reserved, shares, from.shares)
  end
  bucket.definition = newDefinition(to, shares)
  if converts then willWrite(bucket.key) end
  return inShares(band, perPermit), perPermit
end

return {
  open = function(bucket, band, converts)
    local opened, perPermit = open(bucket, band, converts)
    bucket.band = opened
    bucket.isPristine = nil
    return opened, perPermit
  end,

  restore = restore,

  pack = function(definition)
    return pack(definitionFormat, definition.capacity, definition.tokens, definition.window, definition.shares)
  end,
}
