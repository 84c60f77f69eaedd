-- The operations LEASE and SETTLE of operations.lua.

-- Leases the remaining permits: at most `wanted`, at least the permits of the item.
local function lease(count, wanted)
  loadHeld()
  local amount = wanted
  for i = 1, count do
    local _, _, remaining = step(i, 0, 0)
    if remaining < amount then amount = remaining end
  end
  if amount < permitsOf[1] then amount = permitsOf[1] end
  local granted, endsAt = true, never
  for i = 1, count do
    permitsOf[i] = amount
    granted = stepInto(i) and granted
    endsAt = math.min(endsAt, bandsOf[i].algorithm.isWindow and resets[i] or held.leaseEnd(now))
  end
  emit(granted and GRANTED or DENIED)
  for i = 1, count do
    if not granted then skip(i, false)
    else
      commit(buckets[i], nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i])
      -- A window needs no lot: its lease and its count end together.
      if not bandsOf[i].algorithm.isWindow then buckets[i].lots = held.hold(buckets[i].lots, amount * sharesOf[i], endsAt) end
    end
  end
  emitBands(count)
  if granted then
    emit(amount)
    emit(endsAt)
  end
end

-- Settles permits of a lease: positive permits were spent, negative ones are returned.
local function settle(count)
  for i = 1, count do
    local bucket, band, permits, endsAt = buckets[i], bandsOf[i], permitsOf[i] * sharesOf[i], instants[i]
    local first, second, third, fourth = bucket.first, bucket.second, bucket.third, bucket.fourth
    if bucket.lots then
      commit(bucket, held.release(bucket.lots, band, permits, endsAt, now, first, second, third, fourth))
    elseif first and permits < 0 and band.algorithm.isWindow then
      local applies
      applies, first, second, third, fourth = band.algorithm.refund(band, -permits, now, endsAt - 1, first, second, third, fourth)
      if applies then commit(bucket, first, second, third, fourth) end
    end
  end
  emit(GRANTED)
end
