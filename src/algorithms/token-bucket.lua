-- Twin of token-bucket.ts. State: whole, fraction, at, window.

local function levelAt(band, now, whole, fraction, at, window)
  if not whole then return band.capacity, 0 end
  if window ~= band.window then fraction = carriedFraction(fraction, window, band) end
  return refill(whole, fraction, band, now > at and now - at or 0)
end

return {
  stamp = 3,
  format = '<I4i5I6I7I6',

  -- Waiting requests may lower the level far below zero.
  fits = function(whole) return whole >= -2 ^ 39 end,

  isRefilled = true,

  -- The bucket is equivalent to an unused one from the `resetAt` that `step` returns.
  endsAtReset = true,

  step = function(band, permits, now, maxWaitTicks, written, part, at, window)
    local capacity = band.capacity
    -- Fast path of nearly all granted requests: same window, enough permits, and less than one permit refilled since the last.
    if written and written < capacity and permits <= written and window == band.window and now >= at and permits > 0 then
      local left, level = written - permits, part + (now - at) * band.tokens
      local missing = (capacity - left) * window
      if level < window and missing < exactLimit then
        return 0, 0, left, now + ceil((missing - level) / band.tokens), true, left, level, now, window
      end
    end
    local whole, fraction = levelAt(band, now, written, part, at, window)
    local wait = 0
    if permits > capacity then wait = never elseif permits > whole then wait = ticksUntil(whole, fraction, permits, band) end
    local retryAfter, delay, charged = answer(wait, permits, maxWaitTicks)
    if charged then whole = whole - permits end
    local resetAt = now + ticksUntil(whole, fraction, capacity, band)
    local changes = charged or (written and now < at)
    return retryAfter, delay, whole > 0 and whole or 0, resetAt, changes, whole, fraction, now, band.window
  end,

  -- A slot in the middle of the queue is not refunded, because two requests would then be released where one was due.
  refund = function(band, permits, now, grantedAt, written, part, at, window)
    local whole, fraction = levelAt(band, now, written, part, at, window)
    local applies = grantedAt <= now or now + ticksUntil(whole, fraction, 0, band) <= grantedAt
    whole = whole + permits
    if whole >= band.capacity then whole, fraction = band.capacity, 0 end
    return applies, whole, fraction, now, band.window
  end,

  force = function(band, permits, now, written, part, at, window)
    local whole, fraction = levelAt(band, now, written, part, at, window)
    return whole - forcedPermits(band, permits, whole), fraction, now, band.window
  end,

  expiresAt = function(band, whole, fraction, at, window)
    if window ~= band.window then fraction = carriedFraction(fraction, window, band) end
    return at + ticksUntil(whole, fraction, band.capacity, band)
  end,
}
