-- The entries of a log, which are (tick, running total) pairs. Few entries are part of the record of the log; many are read in
-- pages from behind the records (long-logs.lua).
local pageEntries, maxSmallEntries = 64, 16

local function withEntries(log)
  local pages = {}
  log.removeOldest = function(count)
    log.head = log.head + count
    log.size = log.size - count
  end
  log.write = function(index, instant, total)
    log.written[log.head + index] = { instant, total }
  end
  log.read = function(index)
    local slot = log.head + index
    local entry = log.written[slot]
    if entry then return entry[1], entry[2] end
    local number = floor((slot - 1) / pageEntries)
    pages[number] = pages[number] or longLogs.page(log, number, pageEntries)
    return longLogs.entryAt(pages[number], slot - number * pageEntries)
  end
  return log
end

local function newLog()
  return withEntries({ seenAt = 0, shift = 0, base = 0, head = 0, size = 0, written = {} })
end

local function openLog(record, holder)
  if record.long then
    record.long.holder = holder
    return withEntries(record.long)
  end
  local log, at, total = newLog(), smallLogBytes + 1, 0
  local _
  _, log.size, log.seenAt = unpackNumbers('<I4BI7', record.bytes)
  for index = 1, log.size do
    local instant, permits
    instant, permits, at = unpackNumbers('<i7I3', record.bytes, at)
    total = total + permits
    log.write(index, instant, total)
  end
  return log
end

-- The record of a log with few entries, or the log itself if it has many.
local function logRecord(log, band)
  if log.size > (log.offset and maxSmallEntries / 2 or maxSmallEntries) then
    log.tag = band.tag + LONG
    return log
  end
  local parts, before = { pack('<I4BI7', band.tag, log.size, log.seenAt) }, log.base
  for index = 1, log.size do
    local instant, total = log.read(index)
    parts[index + 1] = pack('<i7I3', instant + log.shift, total - before)
    before = total
  end
  return table.concat(parts)
end
