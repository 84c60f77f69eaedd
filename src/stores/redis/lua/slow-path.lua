-- All decisions except a single token bucket that allows, which consume.lua handles itself.
if not bands then
  --@make bands bands.lua
end
local bandAt, operations = bands.at, nil
--@include write-cells.lua

-- Messages of failed operations, in order.
local problems = {}

local function loadOperations()
  if not operations then
    --@make operations operations.lua
  end
  return operations
end

-- Steps the last `bandsLeft` bands of a decision. Each band steps the bands after it before it writes, because all of them
-- must know the outcome: whether the decision is granted, and whether a band delays it. `allowed` and `delayed` are the
-- outcome of the bands before it.
local function charge(offset, key, bandsLeft, allowed, delayed)
  local permits, maxWaitTicks, band = numbers[offset + 1], numbers[offset + 2], bandAt(numbers[offset + 3])
  local kind, first, second, third, fourth
  local value = values[key]
  if value then kind, first, second, third, fourth = unpackNumbers('<Bdddd', value) end
  -- A bucket of another algorithm counts as unused.
  if kind ~= band.kind then first = nil end
  local retryAfter, delay, remaining, resetAt, writes, newFirst, newSecond, newThird, newFourth =
    band.step(band, permits, now, maxWaitTicks, first, second, third, fourth)
  local granted = allowed and retryAfter == 0
  delayed = delayed or delay > 0
  if bandsLeft > 1 then granted, delayed = charge(offset + 3, key + 1, bandsLeft - 1, granted, delayed)
  else
    length = length + 1
    results[length] = not granted and DENIED or delayed and GRANTED or ALLOWED
  end
  if not granted and retryAfter == 0 then
    -- This band would have allowed. It is not charged, so its result is that of zero permits.
    local _
    _, delay, remaining, resetAt, writes, newFirst, newSecond, newThird, newFourth =
      band.step(band, 0, now, 0, first, second, third, fourth)
  end
  -- A denied decision writes only if the clock has stepped back; the timestamp of the bucket then moves back with it.
  local size = first and 4 or 0
  if writes then
    if not granted then size = select(band.algorithm.stamp, first, second, third, fourth) end
    first, second, third, fourth = newFirst, newSecond, newThird, newFourth
    writeCells(KEYS[key], band, resetAt, first, second, third, fourth)
  end
  if granted and not delayed then
    results[length + 1], results[length + 2] = remaining, resetAt
    length = length + 2
    return granted, delayed
  end
  results[length + 1], results[length + 2] = retryAfter == never and -1 or retryAfter, delay
  results[length + 3], results[length + 4] = remaining, resetAt
  length = length + 4
  if not granted then
    -- The caller caches the state, so that it can reject further requests without a call.
    results[length + 1], results[length + 2], results[length + 3] = size, first or 0, second or 0
    results[length + 4], results[length + 5] = third or 0, fourth or 0
    length = length + 5
  end
  return granted, delayed
end

return {
  problems = problems,

  -- One decision of a RUN.
  charge = function(offset, count, key)
    for i = key, key + count - 1 do
      local value = values[i]
      -- The bucket has leased permits, or the value is not a bucket.
      if value and #value ~= 33 then return loadOperations().chargeInRun(offset, count, key) end
    end
    if count > 0 then return charge(offset, key, count, true, false) end
    length = length + 1
    results[length] = ALLOWED
  end,

  decide = function(operation) loadOperations().decide(operation) end,

  finish = function()
    if operations then operations.writeAll() end
  end,
}
