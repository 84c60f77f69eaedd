-- All decisions except token buckets and fixed windows that are charged without waiting, which consume.lua handles itself.
local DENIED, GRANTED = 0, 1
local never, max = math.huge, math.max
local WIDE, LONG, cellBytes, smallLogBytes = 8, 32, 28, 12
-- The bytes of the record of holds before the first hold, and of each hold and each waiting request.
local holdsBytes, holdBytes = 19, 17
-- A waiting request that has not asked for this long is gone: its process has ended or has lost its connection.
local waitingTicks = 1000000
-- The definition at the end of a record: capacity, tokens, window and shares.
local definitionFormat = '<I4I4I6I6'
-- Created by values.lua when a log has many entries.
local longLogs

--@include bands.lua

-- The record of a bucket that is not a log and has no leased permits.
local function packCell(band, first, second, third, fourth)
  local fits = band.algorithm.fits
  if not fits or fits(first, second, third, fourth) then return pack(band.format, band.tag, first, second, third, fourth) end
  return pack('<I4dddd', band.tag + WIDE, first, second, third, fourth)
end

-- The milliseconds of an expiry, as `expiryOption` takes them.
local function expiryMs(expiresAt)
  return ceil((expiresAt - expiryBase) / 1000) + expiryMargin
end

local function setValue(name, value, expiry)
  -- As text: Redis would convert a number with all digits of a double, which is slower.
  call('SET', name, value, expiryOption, format('%d', expiry))
end

local operations
local function loadOperations()
  if not operations then
    --@make operations operations.lua
  end
  return operations
end

--@include run.lua

return {
  chargeRun = function(offset, items, key, listed)
    if listed or found or not chargeRun(offset, items, key) then loadOperations().chargeRun(offset, items, key, listed) end
  end,

  decide = function(operation) loadOperations().decide(operation) end,

  finish = function()
    if operations then operations.writeChanged() end
  end,

  extra = function() return operations and operations.extra() end,
}
