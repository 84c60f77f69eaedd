-- Twin of fixed-window.ts. State: window, count, at, before.
local unknown = -1

-- The open window, its count, and the count of the window before it if that can reopen.
local function countsAt(band, now, window, count, at, before)
  if not window then return windowOf(now, band), 0, unknown end
  local open = windowAt(window, at, now, band)
  if now < at or windowOf(window, band) >= open then return open, count, before end
  return open, 0, unknown
end

return {
  stamp = 3,
  format = '<I4I7I5I7i5',

  -- Counts expire with their window, so leased permits need no expiry of their own.
  isWindow = true,

  step = function(band, permits, now, maxWaitTicks, written, counted, at, previous)
    local open, count, before = countsAt(band, now, written, counted, at, previous)
    local fits = count + permits <= band.capacity
    local granted = (fits or permits == 0) and open or windowAfter(open, band)
    local wait = granted > now and granted - now or 0
    if permits > band.capacity then wait = never end
    local retryAfter, delay, charged = answer(wait, permits, maxWaitTicks)
    local window, after = open, count
    if charged then
      window, after = granted, (fits and count or 0) + permits
      if window > open then before = count end
    end
    local remaining = (window > now or after > band.capacity) and 0 or band.capacity - after
    local changes = charged or (written and now < at)
    return retryAfter, delay, remaining, windowAfter(window, band), changes, window, after, now, before
  end,

  -- Permits of a past window are not refunded, because another window would then grant more than its capacity.
  refund = function(band, permits, now, grantedAt, written, counted, at, previous)
    local open, count, before = countsAt(band, now, written, counted, at, previous)
    count = count > permits and count - permits or 0
    local applies = windowOf(grantedAt, band) == open
    if count == 0 and before >= 0 and open > windowOf(now, band) then
      return applies, windowBefore(open, band), before, now, unknown
    end
    return applies, open, count, now, before
  end,

  -- Debt ends with its window, like every count.
  force = function(band, permits, now, written, counted, at, previous)
    local open, count, before = countsAt(band, now, written, counted, at, previous)
    return open, count + forcedPermits(band, permits, band.capacity - count), now, before
  end,

  expiresAt = function(band, window, count)
    window = windowOf(window, band)
    return count > 0 and windowAfter(window, band) or window
  end,
}
