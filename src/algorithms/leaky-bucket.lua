-- Twin of leaky-bucket.ts. State: the water's whole, fraction, at, window.

-- The room above the water as written, under a band that may have changed since; rounded against the caller.
local function roomOf(band, water, fraction, window)
  if water >= band.capacity then return 0, 0 end
  if fraction == 0 then return band.capacity - water, 0 end
  return band.capacity - water - 1, carriedFraction(window - fraction, window, band)
end

local function roomAt(band, now, water, part, at, window)
  if not water then return band.capacity, 0 end
  local whole, fraction = roomOf(band, water, part, window)
  return refill(whole, fraction, band, now > at and now - at or 0)
end

local function waitFor(whole, fraction, band, permits, patience)
  if permits > band.capacity then return never end
  local untilRoom = ticksUntil(whole, fraction, permits, band)
  if patience == 0 then return untilRoom end
  local untilTurn = ticksUntil(whole, fraction, band.capacity, band) - patience
  return untilTurn > untilRoom and untilTurn or untilRoom
end

local function waterOf(whole, fraction, band, now)
  if fraction == 0 then return band.capacity - whole, 0, now, band.window end
  return band.capacity - whole - 1, band.window - fraction, now, band.window
end

return {
  stamp = 3,

  endsAtReset = true,

  step = function(band, permits, now, patience, water, part, at, window)
    local whole, fraction = roomAt(band, now, water, part, at, window)
    local wait = waitFor(whole, fraction, band, permits, patience)
    local charged = permits > 0 and wait == 0
    local delay = charged and exactTicksUntil(whole, fraction, band.capacity, band) or 0
    local left = charged and whole - permits or whole
    local resetAt = now + ticksUntil(left, fraction, band.capacity, band)
    local changes = charged or (water and now < at)
    return permits == 0 and 0 or wait, delay, left, resetAt, changes, waterOf(left, fraction, band, now)
  end,

  -- A slot in the middle of the queue stays empty, also after its release time: filling it would bring two releases
  -- together. An instant has no room for the fraction of a delay, so that it may be a tick too early. A refund as of now
  -- names no slot.
  refund = function(band, permits, now, grantedAt, water, part, at, window)
    local whole, fraction = roomAt(band, now, water, part, at, window)
    local slotAt = ceil(grantedAt)
    local slotEndsAt = slotAt + ticksUntil(0, 0, permits, band)
    local endsAt = now + ticksUntil(whole, fraction, band.capacity, band)
    whole = whole + permits
    if whole >= band.capacity then whole, fraction = band.capacity, 0 end
    local lastInLine = now + ticksUntil(whole, fraction, band.capacity, band)
    local applies = slotAt == now or lastInLine <= slotAt + 1
    if slotAt < now then applies = endsAt <= slotEndsAt + 1 end
    return applies, waterOf(whole, fraction, band, now)
  end,

  expiresAt = function(band, water, part, at, window)
    local whole, fraction = roomOf(band, water, part, window)
    return at + ticksUntil(whole, fraction, band.capacity, band)
  end,
}
