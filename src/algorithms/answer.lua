-- Twin of answer.ts: retryAfter and delay, from the time until the permits can be had; and whether they are charged.
local function answer(wait, permits, patience)
  if permits == 0 then return 0, 0, false end
  if wait <= patience then return 0, wait, true end
  return wait - patience, 0, false
end
