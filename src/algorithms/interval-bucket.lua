-- Twin of interval-bucket.ts. State: whole, since; two numbers are not used.

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

return {
  endsAtReset = true,

  step = function(band, permits, now, patience, written, writtenSince)
    local whole, since = levelAt(band, now, written, writtenSince)
    local wait = permits > band.capacity and never or ticksUntilTurn(whole, since, permits, band, now)
    local retryAfter, delay, charged = answer(wait, permits, patience)
    local left = charged and whole - permits or whole
    local resetAt = now + ticksUntilTurn(left, since, band.capacity, band, now)
    local changes = charged or (written and now < writtenSince)
    return retryAfter, delay, left > 0 and left or 0, resetAt, changes, left, since, 0, 0
  end,

  -- A place in the middle of the line stays empty: filling it would let too many in with those behind.
  refund = function(band, permits, now, grantedAt, written, writtenSince)
    local whole, since = levelAt(band, now, written, writtenSince)
    local applies = grantedAt <= now or now + ticksUntilTurn(whole, since, 0, band, now) <= grantedAt
    whole = whole + permits
    return applies, whole > band.capacity and band.capacity or whole, since, 0, 0
  end,

  expiresAt = function(band, whole, since)
    return since + ticksUntilTurn(whole, since, band.capacity, band, since)
  end,
}
