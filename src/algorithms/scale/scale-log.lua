-- Twin of scaleLog in scaled-buckets.ts. The entries of a long log are packed in pages, as the frame reads them.
--@include ../../stores/redis/lua/log-pages.lua
local pageFormat = '<' .. rep('i7I7', pageEntries)

-- Adds an entry of a log whose entries are ordered by tick.
local function add(entries, tick, permits)
  local size = #entries
  local total = (entries[size] or 0) + permits
  if entries[size - 1] ~= tick then size = size + 2 end
  entries[size - 1], entries[size] = tick, total
end

-- The entries as a string, in pages.
local function packEntries(entries)
  local parts, width = {}, 2 * pageEntries
  local last = #entries - #entries % width
  for at = 1, last, width do parts[#parts + 1] = pack(pageFormat, unpack(entries, at, at + width - 1)) end
  for at = last + 1, #entries, 2 do parts[#parts + 1] = pack('<i7I7', entries[at], entries[at + 1]) end
  return table.concat(parts)
end

local function logOf(seenAt, entries)
  local log = newLog()
  log.seenAt, log.size = seenAt, #entries / 2
  if log.size <= maxSmallEntries then
    for index = 1, log.size do log.write(index, entries[2 * index - 1], entries[2 * index]) end
    return log
  end
  loadLongLogs()
  -- The entries are read from this string until the log is written.
  log.holder, log.offset, log.capacity, log.isMoved = { isWhole = true, value = packEntries(entries) }, 0, 0, true
  return log
end

return function(log, from, shares, newWindow)
  local hasSameWindow = from.windows == newWindow
  if hasSameWindow and shares == from.capacity then return log end
  local shift = not hasSameWindow and now < log.seenAt and now - log.seenAt or 0
  local forgetUntil = hasSameWindow and -never or now - shift - from.window
  local entries, before = {}, log.base
  local _, total = nil, log.base
  if log.size > 0 then _, total = log.read(log.size) end
  for index = 1, log.size do
    local tick, sum = log.read(index)
    tick = tick + log.shift
    if tick > forgetUntil then
      local permits = scaleUp(total - before, shares, from.capacity) - scaleUp(total - sum, shares, from.capacity)
      if not hasSameWindow then tick = scaledTick(tick + shift, from, newWindow, now) end
      if permits > 0 then add(entries, tick, permits) end
    end
    before = sum
  end
  return logOf(hasSameWindow and log.seenAt or now, entries)
end
