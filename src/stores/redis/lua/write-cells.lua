-- When a bucket ends, as text: Redis itself would write a number with all the digits that a double may have, which takes longer.
local function ending(expiresAt)
  return format('%d', ceil((expiresAt - endsFrom) / 1000) + endsLater)
end

-- `resetAt` is what its step has said, or nil.
local function writeCells(name, band, resetAt, first, second, third, fourth)
  local expiresAt = band.endsAtReset and resetAt or band.algorithm.expiresAt(band, first, second, third, fourth)
  if expiresAt <= now then return call('DEL', name) end
  call('SET', name, pack('<Bdddd', band.kind, first, second, third, fourth), endsBy, ending(expiresAt))
end
