-- A log of (instant, running total) in one string: kind, seenAt, shift, base, head, size, then entries of 16 bytes, of
-- which `size` count from behind the first `head`. It is read in pages and written where it changes, so that a decision
-- costs the same for a long log as for a short one.
local headerBytes, entryBytes, pageEntries = 41, 16, 64

local function withEntries(log, name)
  local pages = {}
  log.written = {}
  log.forget = function(count)
    log.head = log.head + count
    log.size = log.size - count
  end
  log.write = function(index, instant, total)
    log.written[log.head + index] = { instant, total }
  end
  log.read = function(index)
    local place = log.head + index
    local entry = log.written[place]
    if entry then return entry[1], entry[2] end
    local page = floor((place - 1) / pageEntries)
    if not pages[page] then
      local from = headerBytes + page * pageEntries * entryBytes
      pages[page] = call('GETRANGE', name, from, from + pageEntries * entryBytes - 1)
    end
    return unpackNumbers('<dd', pages[page], (place - 1 - page * pageEntries) * entryBytes + 1)
  end
  return log
end

local logKind = 5

local function newLog()
  return withEntries({ seenAt = 0, shift = 0, base = 0, head = 0, size = 0, isNew = true })
end

-- The kind of what is there, and the log if it is one.
local function openLog(name)
  local header = redis.pcall('GETRANGE', name, 0, headerBytes - 1)
  if type(header) == 'table' then return noBucket end
  if header == '' then return 0 end
  local kind = string.byte(header)
  if kind ~= logKind then return kind <= kindsOfBuckets and kind or noBucket end
  if #header < headerBytes then return noBucket end
  local _, seenAt, shift, base, head, size = unpackNumbers('<Bddddd', header)
  return kind, withEntries({ seenAt = seenAt, shift = shift, base = base, head = head, size = size }, name)
end

local function packHeader(log)
  return pack('<Bddddd', logKind, log.seenAt, log.shift, log.base, log.head, log.size)
end

-- Places with something to write that still counts, in order.
local function changedPlaces(log)
  local places = {}
  for place in pairs(log.written) do
    if place > log.head and place <= log.head + log.size then places[#places + 1] = place end
  end
  table.sort(places)
  return places
end

local function writeEntries(log, name)
  local places = changedPlaces(log)
  local first = 1
  while first <= #places do
    local last, entries = first, {}
    repeat
      local entry = log.written[places[last]]
      entries[#entries + 1] = pack('<dd', entry[1], entry[2])
      last = last + 1
    until places[last] ~= places[last - 1] + 1
    call('SETRANGE', name, headerBytes + (places[first] - 1) * entryBytes, table.concat(entries))
    first = last
  end
end

local function writeLog(log, name, expiresAt)
  if expiresAt <= now then return call('DEL', name) end
  -- What is forgotten is cut off once it is the larger part.
  local isSparse = log.head > pageEntries and log.head > log.size
  if log.isNew then call('SET', name, packHeader(log)) end
  writeEntries(log, name)
  if isSparse then
    local from = headerBytes + log.head * entryBytes
    local kept = call('GETRANGE', name, from, from + log.size * entryBytes - 1)
    log.head = 0
    call('SET', name, packHeader(log) .. kept)
  elseif not log.isNew then call('SETRANGE', name, 0, packHeader(log)) end
  local ending = ceil((expiresAt - endsFrom) / 1000) + endsLater
  if endsBy == 'PX' then call('PEXPIRE', name, ending) else call('PEXPIREAT', name, ending) end
end
