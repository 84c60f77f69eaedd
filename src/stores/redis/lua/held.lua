-- Permits that processes have leased and may still spend. They are charged when they are leased, and reduce the capacity of
-- the band while they are held: level + held never exceeds it. Otherwise the bucket could refill while they are held, and both
-- could be spent together.
--
-- A lease lasts one to two seconds and ends at a whole second, or earlier, when a window of the same rule ends. A bucket
-- therefore has at most two lots: `earlier` and `later` are the ticks at which they end, `heldEarlier` and `heldLater` their
-- permits.
local leaseTicks = 1000000
-- A lot that ends later than this was written before the clock stepped back. The limit is twice the longest lease: a process
-- that still holds the old lease must not settle a new one that ends at the same tick.
local maxLeaseTicks = 4 * leaseTicks

local function heldIn(lots)
  return lots.heldEarlier + lots.heldLater
end

-- The band without the capacity that is held.
local function freeBand(lots, band)
  return { capacity = band.capacity - heldIn(lots), tokens = band.tokens, window = band.window, algorithm = band.algorithm }
end

-- The bucket at `tick`, with the current lots held until then.
local function advance(lots, band, tick, first, second, third, fourth)
  local _, _, _, _, _, newFirst, newSecond, newThird, newFourth =
    band.algorithm.step(freeBand(lots, band), 0, tick, 0, first, second, third, fourth)
  return newFirst, newSecond, newThird, newFourth
end

-- Removes the earliest lot. Returns the tick at which it ends, and the bucket at that tick.
local function dropEarliest(lots, band, first, second, third, fourth)
  local endsAt = lots.heldEarlier > 0 and lots.earlier or lots.later
  first, second, third, fourth = advance(lots, band, endsAt, first, second, third, fourth)
  if lots.heldEarlier > 0 then lots.heldEarlier = 0 else lots.heldLater = 0 end
  return endsAt, first, second, third, fourth
end

-- The ticks until permits are available that exceed the free capacity: held capacity becomes free lot by lot.
local function waitForLots(lots, band, permits, now, maxWaitTicks, first, second, third, fourth)
  local remainingLots = { earlier = lots.earlier, heldEarlier = lots.heldEarlier, later = lots.later, heldLater = lots.heldLater }
  local tick
  repeat
    tick, first, second, third, fourth = dropEarliest(remainingLots, band, first, second, third, fourth)
  until permits <= band.capacity - heldIn(remainingLots)
  return tick - now + band.algorithm.step(freeBand(remainingLots, band), permits, tick, maxWaitTicks, first, second, third, fourth)
end

return {
  heldIn = heldIn,
  freeBand = freeBand,

  -- The end of a lease that starts now, unless a window ends earlier.
  leaseEnd = function(now)
    return (floor(now / leaseTicks) + 2) * leaseTicks
  end,

  -- Removes lots that have ended, each at its tick, and returns the bucket after that. Modifies `lots`, so it runs once,
  -- directly after the bucket is loaded.
  dropEnded = function(lots, band, now, first, second, third, fourth)
    if lots.earlier > now + maxLeaseTicks then lots.earlier = now + maxLeaseTicks end
    if lots.later > now + maxLeaseTicks then lots.later = now + maxLeaseTicks end
    while lots.heldEarlier > 0 and lots.earlier <= now or lots.heldEarlier == 0 and lots.heldLater > 0 and lots.later <= now do
      local _
      _, first, second, third, fourth = dropEarliest(lots, band, first, second, third, fourth)
    end
    return first, second, third, fourth
  end,

  step = function(lots, band, permits, now, maxWaitTicks, first, second, third, fourth)
    local free = freeBand(lots, band)
    local needsHeld = permits > free.capacity and permits <= band.capacity
    local retryAfter, delay, remaining, _, changes, newFirst, newSecond, newThird, newFourth =
      band.algorithm.step(free, needsHeld and 0 or permits, now, needsHeld and 0 or maxWaitTicks, first, second, third, fourth)
    if needsHeld then retryAfter = waitForLots(lots, band, permits, now, maxWaitTicks, first, second, third, fourth) end
    -- Held permits count as spent, so the reset time is that of the whole band.
    local resetAt = band.algorithm.expiresAt(band, newFirst, newSecond, newThird, newFourth)
    return retryAfter, delay, remaining, resetAt, changes, newFirst, newSecond, newThird, newFourth
  end,

  refund = function(lots, band, permits, now, grantedAt, first, second, third, fourth)
    return band.algorithm.refund(freeBand(lots, band), permits, now, grantedAt, first, second, third, fourth)
  end,

  -- Adds permits that are held until `endsAt`.
  hold = function(lots, permits, endsAt)
    if not lots then return { earlier = endsAt, heldEarlier = 0, later = endsAt, heldLater = permits } end
    if endsAt == lots.later then lots.heldLater = lots.heldLater + permits
    elseif endsAt == lots.earlier then lots.heldEarlier = lots.heldEarlier + permits
    else
      -- A third lot, after a clock step or an edit of the rule. The two others are merged; ending later than needed is safe.
      lots.heldLater, lots.heldEarlier = heldIn(lots), 0
      if endsAt > lots.later then
        lots.earlier, lots.heldEarlier, lots.later, lots.heldLater = lots.later, lots.heldLater, endsAt, permits
      else lots.earlier, lots.heldEarlier = endsAt, permits end
    end
    return lots
  end,

  -- Removes permits from the lot that ends at `endsAt`, and returns the bucket. Negative permits were not spent and are
  -- refunded, unless the lot has ended: its capacity may have been refilled since.
  release = function(lots, band, permits, endsAt, now, first, second, third, fourth)
    first, second, third, fourth = advance(lots, band, now, first, second, third, fourth)
    local amount = 0
    if lots.later == endsAt then
      amount = math.min(math.abs(permits), lots.heldLater)
      lots.heldLater = lots.heldLater - amount
    elseif lots.earlier == endsAt then
      amount = math.min(math.abs(permits), lots.heldEarlier)
      lots.heldEarlier = lots.heldEarlier - amount
    end
    if permits > 0 or amount == 0 then return first, second, third, fourth end
    return select(2, band.algorithm.refund(freeBand(lots, band), amount, now, now, first, second, third, fourth))
  end,

  -- The tick at which all held permits would be refilled, counted from the end of the last lease.
  refilledAt = function(lots, band)
    local held = heldIn(lots)
    return held == 0 and 0 or lots.later + ceil(held / band.tokens) * band.window
  end,
}
