-- Twin of answer.ts: returns retryAfter, delay and whether the permits are charged, from the time until they are available.
local function answer(wait, permits, maxWaitTicks)
  if permits == 0 then return 0, 0, false end
  if wait <= maxWaitTicks then return 0, wait, true end
  return wait - maxWaitTicks, 0, false
end
