-- The expiry of a bucket as text. Redis would convert a number with all digits of a double, which is slower.
local function expiryArgument(expiresAt)
  return format('%d', ceil((expiresAt - expiryBase) / 1000) + expiryMargin)
end

-- `resetAt` is the result of the step, or nil if unknown.
local function writeCells(name, band, resetAt, first, second, third, fourth)
  local expiresAt = band.endsAtReset and resetAt or band.algorithm.expiresAt(band, first, second, third, fourth)
  if expiresAt <= now then return call('DEL', name) end
  call('SET', name, pack('<Bdddd', band.kind, first, second, third, fourth), expiryOption, expiryArgument(expiresAt))
end
