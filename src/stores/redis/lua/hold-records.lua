-- The record of the holds of a band: its tag, the number of holds (2 bytes), the sum of their permits (4), its timestamp (7), and
-- the holds, which algorithms/concurrency.lua describes.
local function openHolds(record)
  local _, _, total, seenAt = unpackNumbers('<I4I2I4I7', record.bytes)
  return { total = total, seenAt = seenAt, bytes = string.sub(record.bytes, holdsBytes + 1) }
end

local function holdsRecord(list, band)
  return pack('<I4I2I4I7', band.tag, #list.bytes / holdBytes, list.total, list.seenAt) .. list.bytes
end
