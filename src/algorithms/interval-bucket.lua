-- Twin of interval-bucket.ts. State: whole, since, lastAt, lastPermits.

local function levelAt(band, now, whole, since)
  if not whole then return band.capacity, now end
  if since > now then since = now end
  local turns = floor((now - since) / band.window)
  whole = whole + turns * band.tokens
  if whole >= band.capacity then return band.capacity, now end
  return whole, since + turns * band.window
end

local function ticksUntilTurn(whole, since, target, band, now)
  if target <= whole then return 0 end
  return since + ceil((target - whole) / band.tokens) * band.window - now
end

-- The release time of the last waiting requests and the number of their permits. A full bucket is equivalent to an unused one.
local function lastOf(now, isFull, lastAt, lastPermits)
  if isFull or not lastAt or lastAt <= now then return 0, 0 end
  return lastAt, lastPermits
end

-- Adds a waiting request. `before` is the release time of the last request before it according to the level.
local function joined(lastAt, lastPermits, at, permits, before)
  if at == lastAt then return lastAt, lastPermits + permits end
  if before < lastAt then return lastAt, lastPermits end
  return at, at == before and never or permits
end

return {
  stamp = 2,
  format = '<I4i5I7I7I5',

  -- Waiting requests may lower the level far below zero, and the permits of the last ones may be unknown.
  fits = function(whole, _, _, lastPermits) return whole >= -2 ^ 39 and lastPermits < 2 ^ 40 end,

  isRefilled = true,
  endsAtReset = true,

  step = function(band, permits, now, maxWaitTicks, written, writtenSince, lastAt, lastPermits)
    local whole, since = levelAt(band, now, written, writtenSince)
    local wait = permits > band.capacity and never or ticksUntilTurn(whole, since, permits, band, now)
    local retryAfter, delay, charged = answer(wait, permits, maxWaitTicks)
    local left = charged and whole - permits or whole
    local resetAt = now + ticksUntilTurn(left, since, band.capacity, band, now)
    local changes = charged or (written and now < writtenSince)
    lastAt, lastPermits = lastOf(now, whole >= band.capacity, lastAt, lastPermits)
    if charged and wait > 0 then
      local before = now + ticksUntilTurn(whole, since, 0, band, now)
      lastAt, lastPermits = joined(lastAt, lastPermits, now + wait, permits, before)
    end
    return retryAfter, delay, left > 0 and left or 0, resetAt, changes, left, since, lastAt, lastPermits
  end,

  -- A slot in the middle of the queue is not refunded, because too many requests would then be released with the later ones.
  refund = function(band, permits, now, grantedAt, written, writtenSince, lastAt, lastPermits)
    local whole, since = levelAt(band, now, written, writtenSince)
    lastAt, lastPermits = lastOf(now, false, lastAt, lastPermits)
    local isLast = lastAt <= grantedAt and now + ticksUntilTurn(whole, since, 0, band, now) <= grantedAt
    if grantedAt == lastAt then
      lastPermits = lastPermits - permits
      if lastPermits <= 0 then lastAt, lastPermits = 0, 0 end
    end
    whole = whole + permits
    if whole < band.capacity then return grantedAt <= now or isLast, whole, since, lastAt, lastPermits end
    return grantedAt <= now or isLast, band.capacity, since, 0, 0
  end,

  force = function(band, permits, now, written, writtenSince, lastAt, lastPermits)
    local whole, since = levelAt(band, now, written, writtenSince)
    lastAt, lastPermits = lastOf(now, whole >= band.capacity, lastAt, lastPermits)
    return whole - forcedPermits(band, permits, whole), since, lastAt, lastPermits
  end,

  expiresAt = function(band, whole, since)
    return since + ticksUntilTurn(whole, since, band.capacity, band, since)
  end,
}
