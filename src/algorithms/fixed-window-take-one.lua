-- Twin of `stepQuickly` in fixed-window.ts for decisions about a single band: the bucket is unused or of a past window, or it is of
-- the current window and has enough permits left.
local value, open, count, before = values[key], floor(now / window) * window, 0, -1
isDone = not value or #value == 28
if value and isDone then
  local storedTag, storedWindow, storedCount, storedAt, storedBefore = unpackNumbers('<I4I7I5I7i5', value)
  isDone = storedTag == tag and now >= storedAt and storedWindow <= open
  if storedWindow == open then count, before = storedCount, storedBefore end
end
count = count + permits
isDone = isDone and count <= capacity
if isDone then
  length = length + 1
  results[length] = -count
  newValue, newExpiry = pack('<I4I7I5I7i5', tag, open, count, now, before), open + window
end
