-- What `consume-many.lua` does about permits that a process holds in advance.

-- Takes as many permits as there are: no more than wanted, no fewer than needed.
local function lease(count, wanted)
  openHeld()
  local amount = wanted
  for i = 1, count do
    local _, _, remaining = step(i, 0, 0)
    if remaining < amount then amount = remaining end
  end
  if amount < permitsOf[1] then amount = permitsOf[1] end
  local granted, ending = true, never
  for i = 1, count do
    permitsOf[i] = amount
    granted = stepInto(i) and granted
    ending = math.min(ending, claimed[i].algorithm.isWindow and resets[i] or held.leaseEnd(now))
  end
  say(granted and GRANTED or REFUSED)
  for i = 1, count do
    if not granted then leave(i, false)
    else
      write(i, nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i])
      -- What a window has counted ends with it.
      if not claimed[i].algorithm.isWindow then lotsOf[keys[i]] = held.hold(lotsOf[keys[i]], amount, ending) end
    end
  end
  sayBands(count)
  if granted then
    say(amount)
    say(ending)
  end
end

-- Permits of a lease that are held no longer: spent, or below 0 given back.
local function settle(count)
  for i = 1, count do
    local key, band, permits, ending = keys[i], claimed[i], permitsOf[i], instants[i]
    local lots, first, second, third, fourth = lotsOf[key], firsts[key], seconds[key], thirds[key], fourths[key]
    if lots then
      commit(key, band, held.release(lots, band, permits, ending, now, first, second, third, fourth))
    elseif first and permits < 0 and band.algorithm.isWindow then
      local applies
      applies, first, second, third, fourth = band.algorithm.refund(band, -permits, now, ending - 1, first, second, third, fourth)
      if applies then commit(key, band, first, second, third, fourth) end
    end
  end
  say(GRANTED)
end
