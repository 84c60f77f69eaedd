-- fixed-window-take-one.lua for all bands of all items of a decision.
isDone = true
local at = length
for item = 1, items do
  local terms, value = offset + 4 * item, values[listed and numbers[listed + item] or key + item - 1]
  local permits, first, count = numbers[terms - 3], 4 * numbers[terms - 1], numbers[terms]
  local latest, byte, cell = now, 1, 0
  if value and #value ~= 28 * count then isDone = false end
  for band = first, isDone and first + 4 * count - 4 or 0, 4 do
    local tag, capacity, window = numbers[band + 1], numbers[band + 2], numbers[band + 4]
    local open, taken, before = floor(now / window) * window, permits, -1
    if value then
      local storedTag, storedWindow, storedCount, storedAt, storedBefore = unpackNumbers('<I4I7I5I7i5', value, byte)
      isDone = storedTag == tag and now >= storedAt and storedWindow <= open
      if storedWindow == open then taken, before = taken + storedCount, storedBefore end
      byte = byte + 28
    end
    isDone = isDone and taken <= capacity
    if not isDone then break end
    local resetAt = open + window
    if resetAt > latest then latest = resetAt end
    if count == 1 then packed[item] = pack('<I4I7I5I7i5', tag, open, taken, now, before)
    else
      cells[cell + 1], cells[cell + 2], cells[cell + 3], cells[cell + 4], cells[cell + 5] = tag, open, taken, now, before
      cell = cell + 5
    end
    at = at + 1
    results[at] = -taken
  end
  if not isDone then break end
  if count > 1 then
    windowFormats[count] = windowFormats[count] or '<' .. rep('I4I7I5I7i5', count)
    packed[item] = pack(windowFormats[count], unpack(cells, 1, cell))
  end
  expiresAt[item] = latest
end
if isDone then length, written = at, items end
