-- Twin of window.ts: windows are multiples of their length since the epoch.

local function windowOf(tick, band)
  return floor(tick / band.window) * band.window
end

-- The window that counts at `now`; it moves back along when time has stepped back since the state was written.
local function windowAt(written, writtenAt, now, band)
  local current = windowOf(now, band)
  written = windowOf(written, band)
  if now >= writtenAt then return current > written and current or written end
  local ahead = written - windowOf(writtenAt, band)
  return ahead > 0 and current + ahead or current
end
