-- Twin of sliding-window-counter.ts. State: window, previous, current, at.

local function mulDivUp(a, b, m)
  local quotient, rest = mulDiv(a, b, m)
  return rest > 0 and quotient + 1 or quotient
end

local function weight(window, previous, band, now)
  if previous == 0 then return 0 end
  return mulDivUp(band.window - (now - window), previous, band.window)
end

local function countsAt(band, now, written, previous, current, writtenAt)
  if not written then return windowOf(now, band), 0, 0 end
  local window = windowAt(written, writtenAt, now, band)
  written = windowOf(written, band)
  if now < writtenAt then
    -- At an earlier time, the weight of the previous window would be different. It keeps the weight that it had.
    local kept = weight(written, previous, band, written > writtenAt and written or writtenAt)
    return window, 0, current + kept
  end
  if written == window then return window, previous, current end
  return window, written == window - band.window and current or 0, 0
end

-- Ticks from the start of a window until the weight of the previous window, which has `count`, is at most `free`.
local function fadeTicks(count, free, window)
  if count <= free then return 0 end
  return window - (mulDiv(free, window, count))
end

-- The first tick at which the permits fit.
local function earliest(window, previous, current, band, permits, now)
  local free = band.capacity - current - permits
  if free >= 0 then
    local at = window + fadeTicks(previous, free, band.window)
    if now > at then at = now end
    if at < window + band.window then return at end
  end
  return window + band.window + fadeTicks(current, band.capacity - permits, band.window)
end

-- The counts after the permits are taken for the tick `at`, at most two windows ahead.
local function charge(window, previous, current, band, permits, at)
  local following = window + band.window
  if at < following then return window, previous, current + permits end
  if at < following + band.window then return following, current, permits end
  return following + band.window, 0, permits
end

return {
  stamp = 4,
  format = '<I4I7I5I5I7',

  step = function(band, permits, now, maxWaitTicks, written, before, counted, writtenAt)
    local window, previous, current = countsAt(band, now, written, before, counted, writtenAt)
    local possible = permits > 0 and permits <= band.capacity
    local at = possible and earliest(window, previous, current, band, permits, now) or now
    local wait = permits > band.capacity and never or at - now
    local retryAfter, delay, charged = answer(wait, permits, maxWaitTicks)
    if charged then window, previous, current = charge(window, previous, current, band, permits, at) end
    local remaining = window > now and 0 or band.capacity - current - weight(window, previous, band, now)
    local changes = charged or (written and now < writtenAt)
    return retryAfter, delay, remaining > 0 and remaining or 0, window + band.window, changes,
      window, previous, current, now
  end,

  refund = function(band, permits, now, grantedAt, written, before, counted, writtenAt)
    local window, previous, current = countsAt(band, now, written, before, counted, writtenAt)
    local granted = windowOf(grantedAt, band)
    if granted == window - band.window then
      return true, window, previous > permits and previous - permits or 0, current, now
    end
    return granted == window, window, previous, current > permits and current - permits or 0, now
  end,

  force = function(band, permits, now, written, before, counted, writtenAt)
    local window, previous, current = countsAt(band, now, written, before, counted, writtenAt)
    local total = current + weight(window, previous, band, max(now, window))
    return window, previous, current + forcedPermits(band, permits, band.capacity - total), now
  end,

  expiresAt = function(band, window, previous, current)
    local windows = current > 0 and 2 or previous > 0 and 1 or 0
    return windowOf(window, band) + windows * band.window
  end,
}
