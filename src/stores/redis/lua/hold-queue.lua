-- Requests of all processes that wait for a hold to be released, in order of arrival: list.waiting of a bucket of holds. Each is 17
-- bytes: the id of the hold that it will take (8), the tick at which it is considered gone (7) and its permits (2). A request stays
-- in the queue by asking again.

-- Splits the queue of a bucket at the request `id`, without requests that are gone. Returns the bytes of those before it, the sum
-- of their permits, the bytes of those after it, and the tick at which `id` is considered gone, or nil if it does not wait.
local function splitQueue(list, id)
  local before, after, ahead, ownUntil = {}, {}, 0, nil
  for at = 1, #list.waiting, holdBytes do
    local entry = string.sub(list.waiting, at, at + holdBytes - 1)
    local goneAt, permits = unpackNumbers('<i7I2', entry, 9)
    if goneAt > now and goneAt <= now + waitingTicks then
      if string.sub(entry, 1, 8) == id then ownUntil = goneAt
      elseif ownUntil then after[#after + 1] = entry
      else
        before[#before + 1] = entry
        ahead = ahead + permits
      end
    end
  end
  return table.concat(before), ahead, table.concat(after), ownUntil
end

local function queueOf(i)
  local list = bandsOf[i].algorithm.takesHolds and buckets[i].first
  return list and (list.waiting or '') ~= '' and list or nil
end

-- Reserves permits for the requests that wait longer than the current one.
local function reserveForQueue(count)
  for i = 1, count do
    local list = queueOf(i)
    if list then
      local _, ahead = splitQueue(list, holdIds[i])
      list.ahead, list.aheadUntil = ahead, now + waitingTicks
    end
  end
end

local function leaveQueue(i)
  local list = queueOf(i)
  local before, _, after, ownUntil
  if list then before, _, after, ownUntil = splitQueue(list, holdIds[i]) end
  if not ownUntil then return end
  list.waiting = before .. after
  willWrite(buckets[i].key)
end

-- The queue is written every half of `waitingTicks`, because requests ask more often.
local function joinQueue(i)
  local list = bandsOf[i].algorithm.takesHolds and holdIds[i] and buckets[i].first
  if not list then return end
  list.waiting = list.waiting or ''
  local before, _, after, ownUntil = splitQueue(list, holdIds[i])
  if ownUntil and ownUntil > now + waitingTicks / 2 then return end
  list.waiting = before .. holdIds[i] .. pack('<i7I2', now + waitingTicks, permitsOf[i]) .. after
  willWrite(buckets[i].key)
end

-- True if a denied request is allowed as soon as enough holds are released.
local function endsWithRelease(items)
  local i = 0
  for item = 1, items do
    while i < ends[item] do
      i = i + 1
      local isFree = retries[i] == 0 or shadows[item] ~= 0
      if not isFree and (maxWaitsOf[i] == 0 or retries[i] == never or not bandsOf[i].algorithm.takesHolds) then return false end
    end
  end
  return true
end

-- Charges and takes holds. If `waits` is true and only slots are missing, the request joins the queues of its buckets, or stays in
-- them.
local function acquire(items, count, waits)
  chargedHolds = holdIds
  reserveForQueue(count)
  local isWaiting = not chargeAll(items, false) and waits and endsWithRelease(items)
  local i = 0
  for item = 1, items do
    while i < ends[item] do
      i = i + 1
      local list = bandsOf[i].algorithm.takesHolds and buckets[i].first
      if list then list.ahead = nil end
      if isWaiting and shadows[item] == 0 then joinQueue(i) elseif waits then leaveQueue(i) end
    end
  end
end

-- Releases the holds of all bands, or removes the request from their queues, and refunds the other bands unless the item has no
-- permits. Emits the number of released holds.
local function release(count)
  local released = 0
  for i = 1, count do
    if not bandsOf[i].hasNoBucket then
      if bandsOf[i].algorithm.takesHolds then
        released = released + changeHold(i, 'release')
        leaveQueue(i)
      elseif permitsOf[i] > 0 then refundBand(i) end
    end
  end
  emit(GRANTED)
  emit(released)
end
