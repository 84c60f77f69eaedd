-- Twin of scale-cells.ts: converts the state of a bucket to another definition of its band, so that the used fraction is the same at
-- `now`. `from` is the band under the old definition, in shares. `windows` is its window, `newWindows` that of the new definition;
-- numbers from `calendars` identify a calendar.
local calendars = 2 ^ 47

local function scaledTick(tick, from, newWindow, now)
  if tick >= now then return tick end
  return now - (mulDiv(now - tick, newWindow, from.window))
end

local scales = {
  -- The level of a token bucket, which is negative while requests wait.
  [1] = function(from, shares, _, _, whole, fraction, at, window)
    local part = fraction > 0 and 1 or 0
    local used, usedFraction = scaleLevel(from.capacity - whole - part, part * window - fraction, window, shares, from.capacity)
    local rest = usedFraction > 0 and 1 or 0
    return shares - used - rest, rest * window - usedFraction, at, window
  end,

  -- The current interval keeps the part of it that is over. Waiting requests keep their release times.
  [2] = function(from, shares, newWindow, now, whole, since, lastAt, lastPermits)
    if from.window ~= newWindow then since = scaledTick(since, from, newWindow, now) end
    if lastPermits ~= never then lastPermits = scaleUp(lastPermits, shares, from.capacity) end
    return shares - scaleUp(from.capacity - whole, shares, from.capacity), since, lastAt, lastPermits
  end,

  -- The water of a leaky bucket. The window may carry the mark of a debt.
  [3] = function(from, shares, _, _, whole, fraction, at, window)
    whole, fraction = scaleLevel(whole, fraction, from.window, shares, from.capacity)
    return whole, fraction, at, window
  end,

  -- The count moves to the new window that contains `now`.
  [4] = function(from, shares, newWindow, _, window, count, at, before)
    count = scaleUp(count, shares, from.capacity)
    if from.windows == newWindow then
      return window, count, at, before < 0 and before or scaleUp(before, shares, from.capacity)
    end
    return max(window, at), count, at, -1
  end,

  -- In windows of another length, the counts become the count of the new window.
  [6] = function(from, shares, newWindow, now, window, previous, current, at)
    local capacity = from.capacity
    if from.windows == newWindow then
      return window, scaleUp(previous, shares, capacity), scaleUp(current, shares, capacity), at
    end
    local counted = max(window, now)
    local weight = scaleUp(previous, from.window - (counted - window), from.window)
    return counted, 0, scaleUp(current + weight, shares, capacity), now
  end,
}

local function scaleCells(from, shares, newWindow, first, second, third, fourth)
  local countsWindows = from.kind == 4 or from.kind == 6
  if not countsWindows or from.windows ~= newWindow then
    local _
    _, _, _, _, _, first, second, third, fourth = from.algorithm.step(from, 0, now, 0, first, second, third, fourth)
  end
  return scales[from.kind](from, shares, newWindow, now, first, second, third, fourth)
end
