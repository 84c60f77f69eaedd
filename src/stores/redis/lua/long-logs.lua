-- Logs with many entries. Their records are the tag, the timestamp (7 bytes), the shift (7), the total before the oldest entry
-- (7), the number of removed entries and of valid entries, and the offset and capacity of their entries (4 each; capacity 0: up
-- to the end). The entries follow the last record of the value: tick and running total, 7 bytes each. The first ones are
-- removed ones. Entries are read in pages and only changed ones are written, so the cost of a decision does not depend on the
-- length of the log.
local recordFormat, entryFormat, entryBytes = '<I4I7i7I7I4I4I4I4', '<i7I7', 14
-- A log of another version of the rule is dropped this many ticks after its last use.
local maxForeignTicks = 60000000
local leastCapacity = 64

local function packLog(log)
  return pack(recordFormat, log.tag, log.seenAt, log.shift, log.base, log.head, log.size, log.offset, log.capacity)
    .. (log.definition or '')
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

local function bytesOf(holder, from, count)
  if holder.isWhole then return string.sub(holder.value, from + 1, from + count) end
  return call('GETRANGE', holder.name, from, from + count - 1)
end

-- All valid entries, including changed ones.
local function entriesOf(log)
  local stored = log.offset and bytesOf(log.holder, log.offset + log.head * entryBytes, log.size * entryBytes) or ''
  local parts, at = {}, 1
  for _, slot in ipairs(changedSlots(log)) do
    local start = (slot - log.head - 1) * entryBytes + 1
    parts[#parts + 1] = string.sub(stored, at, start - 1)
    parts[#parts + 1] = pack(entryFormat, log.written[slot][1], log.written[slot][2])
    at = start + entryBytes
  end
  parts[#parts + 1] = string.sub(stored, at)
  return table.concat(parts)
end

local function writeEntries(log, name)
  local slots, first = changedSlots(log), 1
  while first <= #slots do
    local last, entries = first, {}
    repeat
      local entry = log.written[slots[last]]
      entries[#entries + 1] = pack(entryFormat, entry[1], entry[2])
      last = last + 1
    until slots[last] ~= slots[last - 1] + 1
    call('SETRANGE', name, log.offset + (slots[first] - 1) * entryBytes, table.concat(entries))
    first = last
  end
end

-- True if the entries can stay where they are. They are moved when removed entries outnumber valid ones.
local function hasRoom(log)
  return log.offset and not log.isMoved and (log.capacity == 0 or log.head + log.size <= log.capacity)
    and not (log.head > leastCapacity and log.head > log.size)
end

local function packHead(parts)
  local head = {}
  for i, part in ipairs(parts) do head[i] = type(part) == 'table' and packLog(part) or part end
  return table.concat(head)
end

-- Writes the whole value. Only the last log can grow without moving others.
local function rewrite(holder, parts, headBytes, expiry)
  local entries, offset, last = {}, headBytes, nil
  for _, log in ipairs(parts) do
    if type(log) == 'table' then
      if last then
        last.capacity = max(leastCapacity, 2 * last.size)
        entries[#entries + 1] = rep(string.char(0), (last.capacity - last.size) * entryBytes)
        offset = last.offset + last.capacity * entryBytes
      end
      entries[#entries + 1] = entriesOf(log)
      log.offset, log.head, log.capacity, last = offset, 0, 0, log
    end
  end
  setValue(holder.name, packHead(parts) .. table.concat(entries), expiry)
end

return {
  read = function(bytes)
    local log = { written = {} }
    log.tag, log.seenAt, log.shift, log.base, log.head, log.size, log.offset, log.capacity =
      unpackNumbers(recordFormat, bytes)
    return log
  end,

  -- The page with this number, of `count` entries.
  page = function(log, number, count)
    return bytesOf(log.holder, log.offset + number * count * entryBytes, count * entryBytes)
  end,

  entryAt = function(page, index)
    return unpackNumbers(entryFormat, page, (index - 1) * entryBytes + 1)
  end,

  isRecent = function(log)
    return now - log.seenAt < maxForeignTicks
  end,

  -- Writes a key with long logs. `parts` are the records, with the log itself in place of the record of a long log.
  write = function(holder, parts, expiry)
    local headBytes, isInPlace = 0, true
    for _, part in ipairs(parts) do
      local isLog = type(part) == 'table'
      headBytes = headBytes + (isLog and longLogBytes + #(part.definition or '') or #part)
      isInPlace = isInPlace and (not isLog or hasRoom(part))
    end
    if not isInPlace or headBytes ~= holder.headBytes then return rewrite(holder, parts, headBytes, expiry) end
    for _, part in ipairs(parts) do
      if type(part) == 'table' then writeEntries(part, holder.name) end
    end
    call('SETRANGE', holder.name, 0, packHead(parts))
    if expiryOption == 'PX' then call('PEXPIRE', holder.name, expiry) else call('PEXPIREAT', holder.name, expiry) end
  end,
}
