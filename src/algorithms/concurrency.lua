-- Twin of concurrency.ts. State: a list of holds, ordered by expiry: list.seenAt, list.total (permits), list.bytes. Each hold is
-- 17 bytes: its id (two numbers of 4 bytes), the tick at which it expires (7) and its permits (2).
-- openHolds and holdsRecord read it from its record and write it. list.ahead is the number of permits that are reserved for
-- requests that wait longer, or nil; list.aheadUntil the tick until which they are reserved at the longest.
local entryBytes = 17

local function entryAt(list, index)
  local expiresAt, permits = unpackNumbers('<i7I2', list.bytes, entryBytes * index - 8)
  return expiresAt, permits
end

-- If the clock has stepped back since the last write, all expiries move back with it.
local function shiftOf(list, now)
  return now < list.seenAt and now - list.seenAt or 0
end

-- The number of expired holds, which are the first ones, and their permits.
local function expiredIn(list, now)
  local count, permits, size = 0, 0, #list.bytes / entryBytes
  while count < size do
    local expiresAt, own = entryAt(list, count + 1)
    if expiresAt > now then break end
    count, permits = count + 1, permits + own
  end
  return count, permits
end

-- The tick at which `missing` permits have expired, counted from the hold `from`.
local function expiryOf(list, from, missing)
  local size = #list.bytes / entryBytes
  for index = from, size do
    local expiresAt, permits = entryAt(list, index)
    missing = missing - permits
    if missing <= 0 or index == size then return expiresAt end
  end
  return list.aheadUntil
end

-- Adds a hold. Usually it is the last one: another place is needed only if `maxHold` was lowered.
local function insert(list, id, expiresAt, permits)
  local index = #list.bytes / entryBytes
  while index > 0 and entryAt(list, index) > expiresAt do index = index - 1 end
  local at = entryBytes * index
  list.bytes = string.sub(list.bytes, 1, at) .. id .. pack('<i7I2', expiresAt, permits) .. string.sub(list.bytes, at + 1)
  list.total = list.total + permits
end

-- Moves all expiries back with the clock.
local function moveBy(list, shift)
  if shift == 0 then return end
  local parts = {}
  for index = 1, #list.bytes / entryBytes do
    local expiresAt, permits = entryAt(list, index)
    local first = entryBytes * (index - 1)
    parts[index] = string.sub(list.bytes, first + 1, first + 8) .. pack('<i7I2', expiresAt + shift, permits)
  end
  list.bytes = table.concat(parts)
end

-- Removes a hold, unless it has expired. Returns its permits, or nil. If the clock has stepped back, the bucket moves to the new
-- time, and list.isMoved is set.
local function take(list, id, now)
  local shift = shiftOf(list, now)
  if shift ~= 0 then
    moveBy(list, shift)
    list.seenAt, list.isMoved = now, true
  end
  local at = string.find(list.bytes, id, 1, true)
  while at and at % entryBytes ~= 1 do at = string.find(list.bytes, id, at + 1, true) end
  if not at then return nil end
  local expiresAt, permits = entryAt(list, (at - 1) / entryBytes + 1)
  if expiresAt <= now then return nil end
  list.bytes = string.sub(list.bytes, 1, at - 1) .. string.sub(list.bytes, at + entryBytes)
  list.total, list.seenAt = list.total - permits, now
  return permits
end

return {
  open = openHolds,
  record = holdsRecord,
  takesHolds = true,

  -- The time of a release is unknown, so no request is granted for a later time.
  step = function(band, permits, now, _, list)
    local shift, expired, used, last = 0, 0, 0, now
    if list then
      shift = shiftOf(list, now)
      local expiredPermits
      expired, expiredPermits = expiredIn(list, now - shift)
      used = list.total - expiredPermits + (list.ahead or 0)
      local size = #list.bytes / entryBytes
      if size > expired then last = entryAt(list, size) + shift end
    end
    local free, wait = band.capacity - used, 0
    if permits > band.capacity then wait = never
    elseif permits > free and permits > 0 then wait = expiryOf(list, expired + 1, permits - free) + shift - now end
    local retryAfter, _, charged = answer(wait, permits, 0)
    local remaining, expiresAt = charged and free - permits or free, now + band.window
    if charged and expiresAt > last then last = expiresAt end
    return retryAfter, 0, remaining > 0 and remaining or 0, last, charged or shift ~= 0,
      now, shift, expired, expiresAt, charged and permits or 0
  end,

  -- Only a hold can be released.
  refund = function(_, _, _, _, list)
    return false, list
  end,

  apply = function(list, seenAt, shift, expired, expiresAt, permits, id)
    list = list or { seenAt = 0, total = 0, bytes = '' }
    for index = 1, expired do
      local _, own = entryAt(list, index)
      list.total = list.total - own
    end
    list.bytes = string.sub(list.bytes, entryBytes * expired + 1)
    moveBy(list, shift)
    list.seenAt = seenAt
    -- A hold without an id cannot be released. It expires.
    if permits > 0 then insert(list, id or string.rep(string.char(0), 8), expiresAt, permits) end
    return list
  end,

  release = function(list, id, now)
    return take(list, id, now) ~= nil
  end,

  renew = function(list, id, now, band)
    local permits = take(list, id, now)
    if permits then insert(list, id, now + band.window, permits) end
    return permits ~= nil
  end,

  expiresAt = function(_, list)
    local size = #list.bytes / entryBytes
    return holdsExpireAt(list, size == 0 and 0 or (entryAt(list, size)))
  end,
}
