-- Twin of leaky-bucket.ts. State: whole, fraction, at, window of the water.

-- Added to the window of water above the capacity that a forced charge has added.
local inDebt = 2 ^ 46

-- The room above the stored water, under a band that may have changed since. Rounded down, never in favour of the request.
local function roomOf(band, water, fraction, window)
  local limit = band.capacity
  if window >= inDebt then
    window = window - inDebt
    limit = limit + forcedPermits(band, limit, 0)
  end
  if water >= limit then return band.capacity - limit, 0 end
  if fraction == 0 then return band.capacity - water, 0 end
  return band.capacity - water - 1, carriedFraction(window - fraction, window, band)
end

local function roomAt(band, now, water, part, at, window)
  if not water then return band.capacity, 0 end
  local whole, fraction = roomOf(band, water, part, window)
  return refill(whole, fraction, band, now > at and now - at or 0)
end

local function waitFor(whole, fraction, band, permits, maxWaitTicks)
  if permits > band.capacity then return never end
  local untilRoom = ticksUntil(whole, fraction, permits, band)
  if maxWaitTicks == 0 then return untilRoom end
  local untilTurn = ticksUntil(whole, fraction, band.capacity, band) - maxWaitTicks
  return untilTurn > untilRoom and untilTurn or untilRoom
end

local function waterOf(whole, fraction, band, now)
  local window = whole < 0 and band.window + inDebt or band.window
  if fraction == 0 then return band.capacity - whole, 0, now, window end
  return band.capacity - whole - 1, band.window - fraction, now, window
end

return {
  stamp = 3,
  format = '<I4I5I6I7I6',

  isRefilled = true,
  endsAtReset = true,

  step = function(band, permits, now, maxWaitTicks, water, part, at, window)
    local whole, fraction = roomAt(band, now, water, part, at, window)
    local wait = waitFor(whole, fraction, band, permits, maxWaitTicks)
    local charged = permits > 0 and wait == 0
    local delay = charged and exactTicksUntil(whole, fraction, band.capacity, band) or 0
    local left = charged and whole - permits or whole
    local resetAt = now + ticksUntil(left, fraction, band.capacity, band)
    local changes = charged or (water and now < at)
    return permits == 0 and 0 or wait, delay, left > 0 and left or 0, resetAt, changes, waterOf(left, fraction, band, now)
  end,

  -- A slot in the middle of the queue is not refunded, even after its release time, because two later releases would then be
  -- too close together. `grantedAt` has lost the fraction of its delay, so it may be one tick too early. A refund as of now
  -- refers to no particular slot.
  refund = function(band, permits, now, grantedAt, water, part, at, window)
    local whole, fraction = roomAt(band, now, water, part, at, window)
    local slotAt = ceil(grantedAt)
    local slotEndsAt = slotAt + ticksUntil(0, 0, permits, band)
    local endsAt = now + ticksUntil(whole, fraction, band.capacity, band)
    whole = whole + permits
    if whole >= band.capacity then whole, fraction = band.capacity, 0 end
    local lastRelease = now + ticksUntil(whole, fraction, band.capacity, band)
    local applies = slotAt == now or lastRelease <= slotAt + 1
    if slotAt < now then applies = endsAt <= slotEndsAt + 1 end
    return applies, waterOf(whole, fraction, band, now)
  end,

  force = function(band, permits, now, water, part, at, window)
    local whole, fraction = roomAt(band, now, water, part, at, window)
    return waterOf(whole - forcedPermits(band, permits, whole), fraction, band, now)
  end,

  expiresAt = function(band, water, part, at, window)
    local whole, fraction = roomOf(band, water, part, window)
    return at + ticksUntil(whole, fraction, band.capacity, band)
  end,
}
