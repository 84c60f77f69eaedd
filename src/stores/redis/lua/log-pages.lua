-- A log of (tick, running total) pairs in one string: kind, seenAt, shift, base, head, size, then entries of 16 bytes. The first
-- `head` entries are removed ones, the next `size` are valid. The log is read in pages and only changed entries are written,
-- so the cost of a decision does not depend on its length.
local headerBytes, entryBytes, pageEntries = 41, 16, 64

local function withEntries(log, name)
  local pages = {}
  log.written = {}
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
    local page = floor((slot - 1) / pageEntries)
    if not pages[page] then
      local from = headerBytes + page * pageEntries * entryBytes
      pages[page] = call('GETRANGE', name, from, from + pageEntries * entryBytes - 1)
    end
    return unpackNumbers('<dd', pages[page], (slot - 1 - page * pageEntries) * entryBytes + 1)
  end
  return log
end

local logKind = 5

local function newLog()
  return withEntries({ seenAt = 0, shift = 0, base = 0, head = 0, size = 0, isNew = true })
end

-- Returns the kind of the value at this key, and the log if it is one.
local function openLog(name)
  local header = redis.pcall('GETRANGE', name, 0, headerBytes - 1)
  if type(header) == 'table' then return notABucket end
  if header == '' then return 0 end
  local kind = string.byte(header)
  if kind ~= logKind then return kind <= kindCount and kind or notABucket end
  if #header < headerBytes then return notABucket end
  local _, seenAt, shift, base, head, size = unpackNumbers('<Bddddd', header)
  return kind, withEntries({ seenAt = seenAt, shift = shift, base = base, head = head, size = size }, name)
end

local function packHeader(log)
  return pack('<Bddddd', logKind, log.seenAt, log.shift, log.base, log.head, log.size)
end

-- The slots of changed entries that are still valid, in order.
local function changedSlots(log)
  local slots = {}
  for slot in pairs(log.written) do
    if slot > log.head and slot <= log.head + log.size then slots[#slots + 1] = slot end
  end
  table.sort(slots)
  return slots
end

local function writeEntries(log, name)
  local slots = changedSlots(log)
  local first = 1
  while first <= #slots do
    local last, entries = first, {}
    repeat
      local entry = log.written[slots[last]]
      entries[#entries + 1] = pack('<dd', entry[1], entry[2])
      last = last + 1
    until slots[last] ~= slots[last - 1] + 1
    call('SETRANGE', name, headerBytes + (slots[first] - 1) * entryBytes, table.concat(entries))
    first = last
  end
end

local function writeLog(log, name, expiresAt)
  if expiresAt <= now then return call('DEL', name) end
  -- The string is compacted when removed entries outnumber valid ones.
  local isSparse = log.head > pageEntries and log.head > log.size
  if log.isNew then call('SET', name, packHeader(log)) end
  writeEntries(log, name)
  if isSparse then
    local from = headerBytes + log.head * entryBytes
    local kept = call('GETRANGE', name, from, from + log.size * entryBytes - 1)
    log.head = 0
    call('SET', name, packHeader(log) .. kept)
  elseif not log.isNew then call('SETRANGE', name, 0, packHeader(log)) end
  local expiry = ceil((expiresAt - expiryBase) / 1000) + expiryMargin
  if expiryOption == 'PX' then call('PEXPIRE', name, expiry) else call('PEXPIREAT', name, expiry) end
end
