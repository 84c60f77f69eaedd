-- Twin of answer.ts: returns retryAfter, delay and whether the permits are charged, from the time until they are available.
local function answer(wait, permits, maxWaitTicks)
  if permits == 0 then return 0, 0, false end
  if wait <= maxWaitTicks then return 0, wait, true end
  return wait - maxWaitTicks, 0, false
end

-- The permits that a forced charge takes from a bucket with `available` permits.
local function forcedPermits(band, permits, available)
  local debt = band.capacity
  if band.algorithm.isRefilled then
    debt = math.min(debt, floor(4503599627370496 / band.window * band.tokens) - debt)
  end
  return math.min(permits, max(0, available + debt))
end
