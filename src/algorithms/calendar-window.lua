-- Twin of calendarWindows in window.ts. The caller computes the periods: `band.window` is the list of the ticks at which they
-- start. The server's clock selects one of them. operations.lua ensures that the list contains all periods that are needed.

-- Returns 0 for a period before the list, which is earlier than every period of the list.
local function windowOf(tick, band)
  local starts = band.window
  for i = #starts, 1, -1 do
    if starts[i] <= tick then return starts[i] end
  end
  return 0
end

local function windowAfter(start, band)
  local starts = band.window
  for i = 1, #starts do
    if starts[i] > start then return starts[i] end
  end
end

local function windowBefore(start, band)
  return windowOf(start - 1, band)
end

local function windowAt(written, writtenAt, now, band)
  local current = windowOf(now, band)
  written = windowOf(written, band)
  if now >= writtenAt then return current > written and current or written end
  local from = windowOf(writtenAt, band)
  while from < written do from, current = windowAfter(from, band), windowAfter(current, band) end
  return current
end
