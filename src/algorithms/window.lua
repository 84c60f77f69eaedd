-- Twin of window.ts: windows are multiples of their length since the epoch.

local function windowOf(tick, band)
  return floor(tick / band.window) * band.window
end

-- The window in which requests are counted at `now`. It moves back if the clock has stepped back since the last write.
local function windowAt(written, writtenAt, now, band)
  local current = windowOf(now, band)
  written = windowOf(written, band)
  if now >= writtenAt then return current > written and current or written end
  local ahead = written - windowOf(writtenAt, band)
  return ahead > 0 and current + ahead or current
end

local function windowAfter(start, band)
  return start + band.window
end

local function windowBefore(start, band)
  return start - band.window
end
