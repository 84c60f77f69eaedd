-- fixed-window-take-one.lua for all bands of all items of a decision.
isDone = true
local at, granted = length + 1, charged
for item = 1, items do
  local terms, value = offset + 4 * item, values[key + item - 1]
  local permits, first, count = numbers[terms - 3], 4 * numbers[terms - 1], numbers[terms]
  local expiresAt, byte, cell = now, 1, 0
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
    if resetAt > expiresAt then expiresAt = resetAt end
    cells[cell + 1], cells[cell + 2], cells[cell + 3], cells[cell + 4], cells[cell + 5] = tag, open, taken, now, before
    cell = cell + 5
    results[at + 1], results[at + 2] = capacity - taken, resetAt
    at = at + 2
  end
  if not isDone then break end
  windowFormats[count] = windowFormats[count] or '<' .. rep('I4I7I5I7i5', count)
  granted = granted + 1
  assignments[2 * granted - 1], assignments[2 * granted] = KEYS[key + item - 1], pack(windowFormats[count], unpack(cells, 1, cell))
  expiries[granted] = format('%d', ceil((expiresAt - expiryBase) / 1000) + expiryMargin)
end
if isDone then
  results[length + 1] = ALLOWED
  length, charged = at, granted
end
