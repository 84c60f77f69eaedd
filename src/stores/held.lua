-- Permits that processes have leased and may still spend. They were charged, and count against the capacity for as long as
-- they are held: level + held never passes it, so that what is held and what refills meanwhile cannot be spent together.
--
-- Leases end at whole seconds and last for one to two of them, so that a bucket has at most two lots:
-- lots.earlier, lots.heldEarlier and lots.later, lots.heldLater are when a lot ends and the permits in it.
local leaseTicks = 1000000

local function leaseEnd(now)
  return (floor(now / leaseTicks) + 2) * leaseTicks
end

local function heldIn(lots)
  return lots.heldEarlier + lots.heldLater
end

-- The band with as much room as those who hold permits leave.
local function reduced(lots, band)
  return { capacity = band.capacity - heldIn(lots), tokens = band.tokens, window = band.window }
end

-- The bucket at `tick`, under what was held until then.
local function advance(lots, band, tick, first, second, third, fourth)
  local _, _, _, _, _, one, two, three, four = band.algorithm.step(reduced(lots, band), 0, tick, 0, first, second, third, fourth)
  return one, two, three, four
end

-- The bucket after lots that have ended gave their room back, each at its instant.
local function dropEnded(lots, band, now, first, second, third, fourth)
  if lots.heldEarlier > 0 and lots.earlier <= now then
    first, second, third, fourth = advance(lots, band, lots.earlier, first, second, third, fourth)
    lots.heldEarlier = 0
  end
  if lots.heldLater > 0 and lots.later <= now then
    first, second, third, fourth = advance(lots, band, lots.later, first, second, third, fourth)
    lots.heldLater = 0
  end
  return first, second, third, fourth
end

return {
  leaseEnd = leaseEnd,
  dropEnded = dropEnded,

  step = function(lots, band, permits, now, patience, first, second, third, fourth)
    first, second, third, fourth = dropEnded(lots, band, now, first, second, third, fourth)
    local narrower = reduced(lots, band)
    if permits <= narrower.capacity or permits > band.capacity then
      return band.algorithm.step(narrower, permits, now, patience, first, second, third, fourth)
    end
    -- More than there is room for beside what is held: possible when that ends, at the latest.
    local _, _, remaining, resetAt, moves, one, two, three, four =
      band.algorithm.step(narrower, 0, now, 0, first, second, third, fourth)
    return lots.later - now, 0, remaining, resetAt, moves, one, two, three, four
  end,

  refund = function(lots, band, permits, now, grantedAt, first, second, third, fourth)
    return band.algorithm.refund(reduced(lots, band), permits, now, grantedAt,
      dropEnded(lots, band, now, first, second, third, fourth))
  end,

  -- The lots once so many permits more are held.
  hold = function(lots, permits, now)
    local ending = leaseEnd(now)
    if not lots then return { earlier = ending, heldEarlier = 0, later = ending, heldLater = permits } end
    if ending > lots.later then
      lots.earlier, lots.heldEarlier = lots.later, lots.heldLater
      lots.later, lots.heldLater = ending, 0
    end
    lots.heldLater = lots.heldLater + permits
    return lots
  end,

  -- The bucket once permits of the lot that ends at `ending` are held no longer.
  release = function(lots, band, permits, ending, now, first, second, third, fourth)
    first, second, third, fourth = dropEnded(lots, band, now, first, second, third, fourth)
    first, second, third, fourth = advance(lots, band, now, first, second, third, fourth)
    if lots.later == ending then lots.heldLater = math.max(0, lots.heldLater - permits)
    elseif lots.earlier == ending then lots.heldEarlier = math.max(0, lots.heldEarlier - permits) end
    return first, second, third, fourth
  end,

  -- When all that is held could have been refilled, counting from the end of the last lease.
  roomAgainAt = function(lots, band)
    local held = heldIn(lots)
    return held == 0 and 0 or lots.later + ceil(held / band.tokens) * band.window
  end,
}
