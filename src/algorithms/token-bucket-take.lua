-- Twin of `charge` in token-bucket.ts for all bands of all items of a decision: the fast path of nearly all requests. The buckets
-- are unused, or each was written under the same window and all products are exact.
isDone = true
local isEmpty, hasUnused, at = false, false, length
for item = 1, items do
  local terms, value = offset + 4 * item, values[listed and numbers[listed + item] or key + item - 1]
  local permits, first, count = numbers[terms - 3], 4 * numbers[terms - 1], numbers[terms]
  local fillTicks, byte, cell = 0, 1, 0
  if not value then hasUnused = true elseif #value ~= 28 * count then isDone = false end
  for band = first, isDone and first + 4 * count - 4 or 0, 4 do
    local tag, capacity, tokens, window = numbers[band + 1], numbers[band + 2], numbers[band + 3], numbers[band + 4]
    local level, left = 0, capacity - permits
    if value then
      local writtenTag, whole, fraction, writtenAt, writtenWindow = unpackNumbers('<I4i5I6I7I6', value, byte)
      level = fraction + (now - writtenAt) * tokens
      if writtenTag ~= tag or writtenWindow ~= window or now < writtenAt or level >= exactLimit then
        isDone = false
        break
      end
      byte = byte + 28
      if level >= window then
        local gained = floor(level / window)
        whole, level = whole + gained, level - gained * window
      end
      if whole >= capacity then whole, level = capacity, 0 end
      left = whole - permits
    end
    local missing = (capacity - left) * window
    if missing >= exactLimit then
      isDone = false
      break
    elseif left < 0 then
      isEmpty = true
      break
    end
    local lacking = missing - level
    local ticks = lacking / tokens
    if ticks > fillTicks then fillTicks = ticks end
    local stamp = stamps[band]
    if not stamp then
      stamp = pack('<I7I6', now, window)
      stamps[band] = stamp
    end
    cells[cell + 1], cells[cell + 2], cells[cell + 3], cells[cell + 4] = tag, left, level, stamp
    cell, at = cell + 4, at + 1
    results[at] = -lacking
  end
  if isEmpty or not isDone then break end
  formats[count] = formats[count] or '<' .. rep('I4i5I6c0', count)
  packed[item] = pack(formats[count], unpack(cells, 1, cell))
  expiresAt[item] = now + (fillTicks + -fillTicks % 1)
end
if isDone and not isEmpty then length, written = at, items
elseif isDone then
  -- Requests that wait need the complete algorithm.
  isDone, at = not hasUnused, length + 1
  for item = 1, isDone and items or 0 do
    local terms, value = offset + 4 * item, values[listed and numbers[listed + item] or key + item - 1]
    local first, count = 4 * numbers[terms - 1], numbers[terms]
    isDone = value and #value == 28 * count and numbers[terms - 2] == 0
    for i = 1, isDone and count or 0 do
      local band = first + 4 * i - 4
      local tag, whole, fraction, writtenAt, window = unpackNumbers('<I4i5I6I7I6', value, 28 * i - 27)
      isDone = tag == numbers[band + 1] and window == numbers[band + 4] and now >= writtenAt and whole >= 0
      if not isDone then break end
      results[at + 1], results[at + 2], results[at + 3] = whole, fraction, writtenAt
      at = at + 3
    end
    if not isDone then break end
  end
  if isDone then
    results[length + 1] = EMPTY
    length = at
  end
end
