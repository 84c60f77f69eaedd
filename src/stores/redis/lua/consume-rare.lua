-- Decisions that are not about a single token bucket that allows.
if not bands then
  --@make bands bands.lua
end
local bandAt, others = bands.at, nil
--@include write-cells.lua

-- Why decisions could not be made, in their order.
local problems = {}

-- Made only for what does not stand by itself.
local function openOthers()
  if not others then
    --@make others consume-many.lua
  end
  return others
end

-- Steps the last `left` bands of a decision. Each asks those after it before it writes or tells, so that all of them know
-- what becomes of the whole: whether it is granted, and whether any band delays it. `allowed` and `delayed` are what the
-- bands before it say.
local function charge(term, key, left, allowed, delayed)
  local permits, maxWaitTicks, band = numbers[term + 1], numbers[term + 2], bandAt(numbers[term + 3])
  local kind, first, second, third, fourth
  local value = values[key]
  if value then kind, first, second, third, fourth = unpackNumbers('<Bdddd', value) end
  -- What another algorithm has left behind means nothing to this one.
  if kind ~= band.kind then first = nil end
  local retryAfter, delay, remaining, resetAt, writes, one, two, three, four =
    band.step(band, permits, now, maxWaitTicks, first, second, third, fourth)
  local granted = allowed and retryAfter == 0
  delayed = delayed or delay > 0
  if left > 1 then granted, delayed = charge(term + 3, key + 1, left - 1, granted, delayed)
  else
    length = length + 1
    results[length] = not granted and REFUSED or delayed and GRANTED or ALLOWED
  end
  if not granted and retryAfter == 0 then
    -- It would have allowed, and is told as it stands.
    local _
    _, delay, remaining, resetAt, writes, one, two, three, four =
      band.step(band, 0, now, 0, first, second, third, fourth)
  end
  -- A refusal writes only if time has stepped back: then the bucket moves along.
  local size = first and 4 or 0
  if writes then
    if not granted then size = select(band.algorithm.stamp, first, second, third, fourth) end
    first, second, third, fourth = one, two, three, four
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
    -- What it looks like, so that the caller need not ask again to know that it still refuses.
    results[length + 1], results[length + 2], results[length + 3] = size, first or 0, second or 0
    results[length + 4], results[length + 5] = third or 0, fourth or 0
    length = length + 5
  end
  return granted, delayed
end

return {
  problems = problems,

  -- One decision of a RUN, about any number of bands.
  charge = function(terms, count, key)
    for i = key, key + count - 1 do
      local value = values[i]
      -- Permits are held of it, or it is no bucket.
      if value and #value ~= 33 then return openOthers().chargeOfRun(terms, count, key) end
    end
    if count > 0 then return charge(terms, key, count, true, false) end
    length = length + 1
    results[length] = ALLOWED
  end,

  decide = function(what) openOthers().decide(what) end,

  finish = function()
    if others then others.writeAll() end
  end,
}
