-- Twin of `charge` in token-bucket.ts for all bands of one key: the fast path of nearly all requests. The buckets are unused, or
-- each was written under the same window and all products are exact.
local value = values[key]
isDone = not value or #value == 28 * count
local isEmpty, expiresAt, at = false, now, length + 1
for i = 1, isDone and count or 0 do
  local terms = 4 * (first + i - 1)
  local tag, capacity, tokens, window = numbers[terms + 1], numbers[terms + 2], numbers[terms + 3], numbers[terms + 4]
  local level, left = 0, capacity - permits
  if value then
    local writtenTag, whole, fraction, writtenAt, writtenWindow = unpackNumbers('<I4i5I6I7I6', value, 28 * i - 27)
    level = fraction + (now - writtenAt) * tokens
    isDone = writtenTag == tag and writtenWindow == window and now >= writtenAt and level < exactLimit
    if not isDone then break end
    if level >= window then
      local gained = floor(level / window)
      whole, level = whole + gained, level - gained * window
    end
    if whole >= capacity then whole, level = capacity, 0 end
    left = whole - permits
  end
  local missing = (capacity - left) * window
  isDone = missing < exactLimit
  isEmpty = left < 0
  if isEmpty or not isDone then break end
  local resetAt = now + ceil((missing - level) / tokens)
  if resetAt > expiresAt then expiresAt = resetAt end
  local cell = 5 * i
  cells[cell - 4], cells[cell - 3], cells[cell - 2], cells[cell - 1], cells[cell] = tag, left, level, now, window
  results[at + 1], results[at + 2] = left, resetAt
  at = at + 2
end
if isDone and isEmpty then
  -- Requests that wait need the complete algorithm.
  isDone = value and numbers[offset + 2] == 0
  at = length + 1
  for i = 1, isDone and count or 0 do
    local terms = 4 * (first + i - 1)
    local tag, whole, fraction, writtenAt, window = unpackNumbers('<I4i5I6I7I6', value, 28 * i - 27)
    isDone = tag == numbers[terms + 1] and window == numbers[terms + 4] and now >= writtenAt and whole >= 0
    if not isDone then break end
    results[at + 1], results[at + 2], results[at + 3] = whole, fraction, writtenAt
    at = at + 3
  end
  if isDone then
    results[length + 1] = EMPTY
    length = at
  end
elseif isDone then
  -- Formatted here, because Redis would convert the number with all digits of a double, which is slower.
  call('SET', KEYS[key], pack(cellsFormat, unpack(cells, 1, 5 * count)), expiryOption,
    format('%d', ceil((expiresAt - expiryBase) / 1000) + expiryMargin))
  results[length + 1] = ALLOWED
  length = at
end
