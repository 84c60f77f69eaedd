-- The operations RELEASE and RENEW of operations.lua, and the hold ids of an operation. Each item of QUEUE, ACQUIRE, RELEASE and
-- RENEW is followed by two numbers: its hold id, or -1 twice.

-- By band, the id of the hold as eight bytes, or nil.
local holdIds = {}

-- Reads the hold id of an item, for its bands from `first` to `last`.
local function readHoldId(first, last)
  local high, low = numbers[position + 1], numbers[position + 2]
  position = position + 2
  local id = high >= 0 and pack('<I4I4', high, low) or nil
  for i = first, last do holdIds[i] = id end
end

local function holdOf(i)
  local algorithm = bandsOf[i].algorithm
  return algorithm.takesHolds and holdIds[i] and buckets[i].first and algorithm
end

-- Releases or renews the hold of band `i`. Returns 1 if there was one, otherwise 0.
local function changeHold(i, action)
  local algorithm, list = holdOf(i), buckets[i].first
  if not algorithm then return 0 end
  local isFound = algorithm[action](list, holdIds[i], now, bandsOf[i])
  if isFound or list.isMoved then willWrite(buckets[i].key) end
  return isFound and 1 or 0
end

-- Emits the number of bands without the hold.
local function renew(count)
  local missing, holds = 0, 0
  for i = 1, count do
    if bandsOf[i].algorithm.takesHolds then
      holds = holds + 1
      missing = missing + 1 - changeHold(i, 'renew')
    end
  end
  emit(GRANTED)
  emit(holds == 0 and 1 or missing)
end
