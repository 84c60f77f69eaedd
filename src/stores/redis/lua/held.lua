-- Permits that processes have leased and may still spend. They were charged, and count against the capacity for as long as
-- they are held: level + held never passes it, so that what is held and what refills meanwhile cannot be spent together.
--
-- Leases end at whole seconds and last for one to two of them, or until a window of the same rule ends, if that is sooner;
-- so a bucket has two lots at most: lots.earlier, lots.heldEarlier and lots.later, lots.heldLater are when a lot ends and
-- the permits in it.
local leaseTicks = 1000000
-- A lot that ends later than this was written before time stepped back. Twice as long as a lease lasts, so that nobody who
-- has one of before settles it when another ends at the same tick.
local longest = 4 * leaseTicks

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

-- The bucket at the end of its earliest lot, without it, and when that was.
local function dropEarliest(lots, band, first, second, third, fourth)
  local ending = lots.heldEarlier > 0 and lots.earlier or lots.later
  first, second, third, fourth = advance(lots, band, ending, first, second, third, fourth)
  if lots.heldEarlier > 0 then lots.heldEarlier = 0 else lots.heldLater = 0 end
  return ending, first, second, third, fourth
end

-- How long until permits can be had that there is no room for beside what is held: it gives way lot by lot.
local function waitForRoom(lots, band, permits, now, maxWaitTicks, first, second, third, fourth)
  local left = { earlier = lots.earlier, heldEarlier = lots.heldEarlier, later = lots.later, heldLater = lots.heldLater }
  local tick
  repeat
    tick, first, second, third, fourth = dropEarliest(left, band, first, second, third, fourth)
  until permits <= band.capacity - heldIn(left)
  return tick - now + band.algorithm.step(reduced(left, band), permits, tick, maxWaitTicks, first, second, third, fourth)
end

return {
  heldIn = heldIn,

  -- When a lease of now ends, if no window does so sooner.
  leaseEnd = function(now)
    return (floor(now / leaseTicks) + 2) * leaseTicks
  end,

  -- The bucket after lots that have ended gave their room back, each at its instant. Changes the lots, so it is done once
  -- with what was read, before anything else.
  dropEnded = function(lots, band, now, first, second, third, fourth)
    if lots.earlier > now + longest then lots.earlier = now + longest end
    if lots.later > now + longest then lots.later = now + longest end
    while lots.heldEarlier > 0 and lots.earlier <= now or lots.heldEarlier == 0 and lots.heldLater > 0 and lots.later <= now do
      local _
      _, first, second, third, fourth = dropEarliest(lots, band, first, second, third, fourth)
    end
    return first, second, third, fourth
  end,

  step = function(lots, band, permits, now, maxWaitTicks, first, second, third, fourth)
    local narrower = reduced(lots, band)
    local isWide = permits > narrower.capacity and permits <= band.capacity
    local retryAfter, delay, remaining, _, changes, one, two, three, four =
      band.algorithm.step(narrower, isWide and 0 or permits, now, isWide and 0 or maxWaitTicks, first, second, third, fourth)
    if isWide then retryAfter = waitForRoom(lots, band, permits, now, maxWaitTicks, first, second, third, fourth) end
    -- Full is what it is without leases: what is held counts as spent.
    return retryAfter, delay, remaining, band.algorithm.expiresAt(band, one, two, three, four), changes, one, two, three, four
  end,

  refund = function(lots, band, permits, now, grantedAt, first, second, third, fourth)
    return band.algorithm.refund(reduced(lots, band), permits, now, grantedAt, first, second, third, fourth)
  end,

  -- The lots once so many permits more are held until `ending`.
  hold = function(lots, permits, ending)
    if not lots then return { earlier = ending, heldEarlier = 0, later = ending, heldLater = permits } end
    if ending == lots.later then lots.heldLater = lots.heldLater + permits
    elseif ending == lots.earlier then lots.heldEarlier = lots.heldEarlier + permits
    else
      -- A third lot, if time has stepped back or the rule was edited: one that ends later than it need is no harm.
      lots.heldLater, lots.heldEarlier = heldIn(lots), 0
      if ending > lots.later then
        lots.earlier, lots.heldEarlier, lots.later, lots.heldLater = lots.later, lots.heldLater, ending, permits
      else lots.earlier, lots.heldEarlier = ending, permits end
    end
    return lots
  end,

  -- The bucket once permits of the lot that ends at `ending` are held no longer. Below 0, they were not spent and come
  -- back; but not after the lot has ended, when its room may have been refilled.
  release = function(lots, band, permits, ending, now, first, second, third, fourth)
    first, second, third, fourth = advance(lots, band, now, first, second, third, fourth)
    local amount = 0
    if lots.later == ending then
      amount = math.min(math.abs(permits), lots.heldLater)
      lots.heldLater = lots.heldLater - amount
    elseif lots.earlier == ending then
      amount = math.min(math.abs(permits), lots.heldEarlier)
      lots.heldEarlier = lots.heldEarlier - amount
    end
    if permits > 0 or amount == 0 then return first, second, third, fourth end
    return select(2, band.algorithm.refund(reduced(lots, band), amount, now, now, first, second, third, fourth))
  end,

  -- When all that is held could have been refilled, counting from the end of the last lease.
  roomAgainAt = function(lots, band)
    local held = heldIn(lots)
    return held == 0 and 0 or lots.later + ceil(held / band.tokens) * band.window
  end,
}
