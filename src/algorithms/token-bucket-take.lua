-- Twin of `charge` in token-bucket.ts: the fast path of nearly all granted requests. The bucket is unused; or it was written
-- under the same window, has enough permits, and has been refilled by less than one permit.
local value = values[key]
local kind, whole, fraction, at, under = TOKEN_BUCKET, capacity, 0, now, window
-- A value of any other size is not a token bucket.
if value and #value == 33 then kind, whole, fraction, at, under = unpackNumbers('<Bdddd', value)
elseif value then kind = 0 end
local left, level = whole - permits, fraction + (now - at) * tokens
local missing = (capacity - left) * window
isDone = kind == TOKEN_BUCKET and under == window and left >= 0 and (whole < capacity or not value) and now >= at
  and level < window and missing < 9007199254740992
if isDone then
  local resetAt = now + ceil((missing - level) / tokens)
  -- Formatted here, because Redis would convert the number with all digits of a double, which is slower.
  call('SET', KEYS[key], pack('<Bdddd', TOKEN_BUCKET, left, level, now, window), expiryOption,
    format('%d', ceil((resetAt - expiryBase) / 1000) + expiryMargin))
  results[length + 1], results[length + 2], results[length + 3] = ALLOWED, left, resetAt
  length = length + 3
end
