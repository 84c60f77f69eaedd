-- Charges of a RUN whose values are cells in the order of their bands. Nothing else uses their keys, so they are read and written
-- at once, without bucket objects.

-- By position of the band: the band, four numbers of its bucket and of its new bucket, and retryAfter, delay, remaining, resetAt
-- and whether it must be written.
local runBands, old, new, outcomes = {}, {}, {}, {}

-- Reads and steps the bands of an item after band `i`. Returns false if its value has another form; otherwise true, and whether
-- all bands allow and none of them delays.
local function stepItem(i, permits, maxWaitTicks, value, first, count)
  local allows, isPlain, suffix = true, true, bandAt(first).suffix
  local recordBytes = suffix and cellBytes + #suffix or cellBytes
  if value and #value ~= recordBytes * count then return false end
  for j = 0, count - 1 do
    local band, state, outcome, tag = bandAt(first + j), 4 * (i + j), 5 * (i + j), nil
    local a, b, c, d
    if value then
      local at = recordBytes * j + 1
      tag, a, b, c, d = unpackNumbers(band.format, value, at)
      if tag ~= band.tag then return false end
      if suffix and string.sub(value, at + cellBytes, at + recordBytes - 1) ~= band.suffix then return false end
    end
    runBands[i + j + 1] = band
    old[state + 1], old[state + 2], old[state + 3], old[state + 4] = a, b, c, d
    local retryAfter, delay, remaining, resetAt, writes
    retryAfter, delay, remaining, resetAt, writes, new[state + 1], new[state + 2], new[state + 3], new[state + 4] =
      band.algorithm.step(band, permits, now, maxWaitTicks, a, b, c, d)
    outcomes[outcome + 1], outcomes[outcome + 2], outcomes[outcome + 3] = retryAfter, delay, remaining
    outcomes[outcome + 4], outcomes[outcome + 5] = resetAt, writes
    allows = allows and retryAfter == 0
    isPlain = isPlain and delay == 0
  end
  return true, allows, isPlain
end

-- Writes the bands from `first` to `last` of a key. Unchanged bands are included, with their current state.
local function writeItem(name, first, last)
  local value, expiresAt = '', 0
  for i = first, last do
    local band, state = runBands[i], 4 * i - 4
    local a, b, c, d = new[state + 1], new[state + 2], new[state + 3], new[state + 4]
    expiresAt = max(expiresAt, band.algorithm.expiresAt(band, a, b, c, d))
    value = value .. packCell(band, a, b, c, d)
    if band.suffix then value = value .. band.suffix end
  end
  if expiresAt + 1000 * expiryMargin <= now then call('DEL', name) else setValue(name, value, expiryMs(expiresAt)) end
end

-- Emits the denied band `i` and its bucket, which the caller caches, so that it can reject further requests without a call.
-- Returns true if its timestamp has moved back with the clock.
local function denyBand(i)
  local band, state, outcome, size = runBands[i], 4 * i - 4, 5 * i - 5, nil
  local a, b, c, d = old[state + 1], old[state + 2], old[state + 3], old[state + 4]
  local retryAfter, delay, remaining, resetAt, moves = outcomes[outcome + 1], outcomes[outcome + 2], outcomes[outcome + 3],
    outcomes[outcome + 4], outcomes[outcome + 5]
  local e, f, g, h
  if retryAfter == 0 or moves then
    -- A band that would have allowed is not charged, so its result is that of zero permits.
    local _, delay0, remaining0, resetAt0
    _, delay0, remaining0, resetAt0, moves, e, f, g, h = band.algorithm.step(band, 0, now, 0, a, b, c, d)
    if retryAfter == 0 then delay, remaining, resetAt = delay0, remaining0, resetAt0 end
  end
  size = a and 4 or 0
  if moves then
    size = select(band.algorithm.stamp, a, b, c, d)
    a, b, c, d = e, f, g, h
  end
  new[state + 1], new[state + 2], new[state + 3], new[state + 4] = a, b, c, d
  results[length + 1], results[length + 2] = retryAfter == never and -1 or retryAfter, delay
  results[length + 3], results[length + 4], results[length + 5] = remaining, resetAt, size
  results[length + 6], results[length + 7], results[length + 8], results[length + 9] = a or 0, b or 0, c or 0, d or 0
  length = length + 9
  return moves
end

-- Charges the next decision of a RUN. Returns false if a value has another form; nothing is then charged.
local function chargeRun(offset, items, key)
  local granted, isPlain, count = true, true, 0
  for item = 1, items do
    local terms = offset + 4 * item
    local isDone, allows, isUndelayed =
      stepItem(count, numbers[terms - 3], numbers[terms - 2], values[key + item - 1], numbers[terms - 1], numbers[terms])
    if not isDone then return false end
    granted, isPlain, count = granted and allows, isPlain and isUndelayed, count + numbers[terms]
  end
  length = length + 1
  results[length] = not granted and DENIED or isPlain and ALLOWED or GRANTED
  local last = 0
  for item = 1, items do
    local first, isChanged = last + 1, granted and numbers[offset + 4 * item] > 0
    last = last + numbers[offset + 4 * item]
    for i = first, last do
      local outcome = 5 * i - 5
      if not granted then isChanged = denyBand(i) or isChanged
      else
        if not isPlain then
          results[length + 1], results[length + 2] = 0, outcomes[outcome + 2]
          length = length + 2
        end
        results[length + 1], results[length + 2] = outcomes[outcome + 3], outcomes[outcome + 4]
        length = length + 2
      end
    end
    if isChanged then writeItem(KEYS[key + item - 1], first, last) end
  end
  return true
end
