-- token-bucket-take.lua for decisions about a single band, without its loops.
local value, whole, level = values[key], capacity, 0
local storedWhole, storedLevel, storedAt = -1, nil, nil
isDone = not value or #value == 28
if value and isDone then
  local storedTag, storedWindow
  storedTag, storedWhole, storedLevel, storedAt, storedWindow = unpackNumbers('<I4i5I6I7I6', value)
  whole, level = storedWhole, storedLevel + (now - storedAt) * tokens
  isDone = storedTag == tag and storedWindow == window and now >= storedAt and level < exactLimit
  if level >= window then
    local gained = floor(level / window)
    whole, level = whole + gained, level - gained * window
  end
  if whole >= capacity then whole, level = capacity, 0 end
end
local left = whole - permits
local missing = (capacity - left) * window
if not isDone or missing >= exactLimit then isDone = false
elseif left >= 0 then
  local resetAt = now + ceil((missing - level) / tokens)
  results[length + 1], results[length + 2], results[length + 3] = ALLOWED, left, resetAt
  length, written = length + 3, 1
  packed[1], expiresAt[1] = pack('<I4i5I6I7I6', tag, left, level, now, window), resetAt
elseif storedWhole >= 0 and maxWaitTicks == 0 then
  results[length + 1], results[length + 2], results[length + 3], results[length + 4] = EMPTY, storedWhole, storedLevel, storedAt
  length = length + 4
else isDone = false end
