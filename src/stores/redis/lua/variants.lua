-- The operations FORCE and PARTIAL of operations.lua.

-- Takes permits in any case, into debt.
local function forceBand(i, permits)
  local band, bucket = bandsOf[i], buckets[i]
  permits = permits * sharesOf[i]
  local terms = bucket.lots and held.freeBand(bucket.lots, band) or band
  commit(bucket, band.algorithm.force(terms, permits, now, bucket.first, bucket.second, bucket.third, bucket.fourth))
  oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i] = bucket.first, bucket.second, bucket.third, bucket.fourth
end

-- Sets the results of a band to its current state.
local function readBack(i)
  retries[i], delays[i], remainders[i], resets[i] = step(i, 0, 0)
end

local function force(count)
  for i = 1, count do
    if not bandsOf[i].hasNoBucket and not buckets[i].original then forceBand(i, permitsOf[i]) end
    readBack(i)
  end
  emit(GRANTED)
  emitBands(count)
end

-- Takes as many multiples of `unit` as all bands allow now, at least one, at most the permits of the item. Then emits the permits.
local function takePart(count, unit)
  local amount = count > 0 and permitsOf[1] or 0
  for i = 1, count do
    local _, _, remaining = step(i, 0, 0)
    if remaining < amount then amount = remaining end
  end
  amount = max(unit, floor(amount / unit) * unit)
  local granted = true
  for i = 1, count do
    permitsOf[i] = amount
    granted = stepInto(i) and granted
  end
  for i = 1, count do
    if not granted then skip(i, false)
    else commit(buckets[i], nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i], nextFifths[i]) end
  end
  emit(granted and GRANTED or DENIED)
  emitBands(count)
  emit(amount)
end
