-- token-bucket-take.lua for decisions about a single band, without its loops. An unused bucket is read as `unused`, a full one.
local value = values[key] or unused
if #value == 28 then
  local storedTag, whole, storedLevel, at, storedWindow = unpackNumbers('<I4i5I6I7I6', value)
  local level = storedLevel + (now - at) * tokens
  if storedTag == tag and storedWindow == window and now >= at and level < exactLimit then
    local left = whole
    if level >= window then
      local gained = floor(level / window)
      left, level = left + gained, level - gained * window
    end
    if left >= capacity then left, level = capacity, 0 end
    left = left - permits
    local missing = (capacity - left) * window
    if missing < exactLimit then
      if left >= 0 then
        local lacking = missing - level
        local fillTicks = lacking / tokens
        isDone, length = true, length + 1
        results[length] = -lacking
        newValue, newExpiry = pack('<I4i5I6c0', tag, left, level, stamp), now + (fillTicks + -fillTicks % 1)
      elseif whole >= 0 and maxWaitTicks == 0 and value ~= unused then
        results[length + 1], results[length + 2], results[length + 3], results[length + 4] = EMPTY, whole, storedLevel, at
        isDone, length = true, length + 4
      end
    end
  end
end
