-- Twin of sliding-window-log.ts and request-log.ts. State: a log of (tick, running total) pairs, which the frame provides:
-- log.seenAt, log.shift (is added to ticks), log.base (the total before the oldest entry), log.size,
-- log.read(i) and log.write(i, tick, total) for the i-th oldest entry, log.removeOldest(n) to remove the n oldest entries.
-- newLog, openLog and logRecord of the frame (stores/redis/lua/log-pages.lua) read it from its record and write it.

local function timeAt(log, index)
  return (log.read(index)) + log.shift
end

-- The running total of the first `count` entries.
local function totalOf(log, count)
  if count == 0 then return log.base end
  local _, total = log.read(count)
  return total
end

-- The number of entries that are not later than `tick`.
local function countUntil(log, tick)
  local low, high = 0, log.size
  -- Gallops from the oldest entry, because few entries usually expire at once.
  local width = 1
  while low + width <= high and timeAt(log, low + width) <= tick do
    low = low + width
    width = width * 2
  end
  if low + width <= high then high = low + width - 1 end
  while low < high do
    local middle = ceil((low + high) / 2)
    if timeAt(log, middle) <= tick then low = middle else high = middle - 1 end
  end
  return low
end

local function grantedAfter(log, tick)
  return totalOf(log, log.size) - totalOf(log, countUntil(log, tick))
end

-- The tick of the n-th oldest permit granted later than `tick`.
local function nthAfter(log, tick, n)
  local first = countUntil(log, tick)
  local target = totalOf(log, first) + n
  local low, high = first + 1, log.size
  while low < high do
    local middle = floor((low + high) / 2)
    if totalOf(log, middle) >= target then high = middle else low = middle + 1 end
  end
  return timeAt(log, low)
end

-- If the clock has stepped back since the last write, all entries move back with it.
local function shiftOf(log, now)
  return now < log.seenAt and now - log.seenAt or 0
end

local function earliest(log, band, permits, now, shift)
  if log.size == 0 then return now end
  local from = timeAt(log, log.size) + shift
  if now > from then from = now end
  local horizon = from - shift - band.window
  local excess = grantedAfter(log, horizon) + permits - band.capacity
  if excess <= 0 then return from end
  return nthAfter(log, horizon, excess) + shift + band.window
end

-- Removes the newest permits granted at or before `at`. Later grants stay.
local function takeBack(log, at, permits)
  local index = countUntil(log, at)
  while index > 0 and permits > 0 do
    local _, total = log.read(index)
    local here = total - totalOf(log, index - 1)
    local taken = permits < here and permits or here
    for later = index, log.size do
      local instant, sum = log.read(later)
      log.write(later, instant, sum - taken)
    end
    permits = permits - taken
    index = index - 1
  end
  while log.size > 0 and totalOf(log, log.size) == totalOf(log, log.size - 1) do log.size = log.size - 1 end
end

local function append(log, at, permits)
  local total = totalOf(log, log.size) + permits
  if log.size == 0 or timeAt(log, log.size) ~= at then log.size = log.size + 1 end
  log.write(log.size, at - log.shift, total)
end

return {
  open = openLog,
  record = logRecord,

  step = function(band, permits, now, maxWaitTicks, log)
    local shift = log and shiftOf(log, now) or 0
    local newest = log and log.size > 0 and timeAt(log, log.size) + shift or nil
    local counted = log and grantedAfter(log, now - shift - band.window) or 0
    local possible = permits > 0 and permits <= band.capacity
    local at = possible and log and earliest(log, band, permits, now, shift) or now
    local wait = permits > band.capacity and never or at - now
    local retryAfter, delay, charged = answer(wait, permits, maxWaitTicks)
    if charged then
      newest = at
      counted = counted + permits
    end
    local remaining = newest and newest > now and 0 or band.capacity - counted
    local resetAt = newest and newest + band.window or now
    return retryAfter, delay, remaining > 0 and remaining or 0, resetAt > now and resetAt or now, charged or shift ~= 0,
      now, shift, now - band.window, at, charged and permits or 0
  end,

  refund = function(band, permits, now, grantedAt, log)
    return true, now, shiftOf(log, now), now - band.window, grantedAt, -permits
  end,

  force = function(band, permits, now, log)
    local shift = log and shiftOf(log, now) or 0
    local counted = log and grantedAfter(log, now - shift - band.window) or 0
    local at = log and log.size > 0 and max(now, timeAt(log, log.size) + shift) or now
    return now, shift, now - band.window, at, forcedPermits(band, permits, band.capacity - counted)
  end,

  -- Removes entries up to `forgetUntil`, and then adds `permits` granted at `at`, or removes them if negative.
  apply = function(log, seenAt, shift, forgetUntil, at, permits)
    log = log or newLog()
    log.shift = log.shift + shift
    log.seenAt = seenAt
    local over = countUntil(log, forgetUntil)
    log.base = totalOf(log, over)
    log.removeOldest(over)
    if permits > 0 then append(log, at, permits)
    elseif permits < 0 then takeBack(log, at, -permits) end
    return log
  end,

  -- The time at which the oldest entry expires, or the last waiting request is released if that is earlier.
  unchangedUntil = function(band, now, log)
    local shift = shiftOf(log, now)
    local over = countUntil(log, now - shift - band.window)
    if over == log.size then return 2 ^ 53 end
    local leaves, newest = timeAt(log, over + 1) + shift + band.window, timeAt(log, log.size) + shift
    return newest > now and newest < leaves and newest or leaves
  end,

  expiresAt = function(band, log)
    return log.size == 0 and 0 or timeAt(log, log.size) + band.window
  end,
}
