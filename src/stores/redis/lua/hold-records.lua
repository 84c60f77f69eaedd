-- The record of the holds of a band: its tag, the number of holds (2 bytes), the sum of their permits (4), its timestamp (7), the
-- number of waiting requests (2), the holds, which algorithms/concurrency.lua describes, and the waiting requests, which
-- hold-queue.lua describes.
local function openHolds(record)
  local _, count, total, seenAt = unpackNumbers('<I4I2I4I7', record.bytes)
  local last = holdsBytes + holdBytes * count
  return {
    total = total,
    seenAt = seenAt,
    bytes = string.sub(record.bytes, holdsBytes + 1, last),
    waiting = string.sub(record.bytes, last + 1),
  }
end

local function holdsRecord(list, band)
  local waiting = list.waiting or ''
  return pack('<I4I2I4I7I2', band.tag, #list.bytes / holdBytes, list.total, list.seenAt, #waiting / holdBytes)
    .. list.bytes .. waiting
end

-- The tick at which a record has neither holds nor waiting requests any more.
local function holdsExpireAt(list, lastHoldAt)
  return (list.waiting or '') == '' and lastHoldAt or max(lastHoldAt, now + waitingTicks)
end
