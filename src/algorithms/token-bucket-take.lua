-- Twin of `charge` in token-bucket.ts. Nearly all requests that are granted are about a bucket under this very band, with
-- permits enough, and less than one refilled since the last; or about one that nobody has used.
local value = values[key]
local kind, whole, fraction, at, under = TOKEN_BUCKET, capacity, 0, now, window
-- Of any other size it is none.
if value and #value == 33 then kind, whole, fraction, at, under = unpackNumbers('<Bdddd', value)
elseif value then kind = 0 end
local left, level = whole - permits, fraction + (now - at) * tokens
local missing = (capacity - left) * window
isDone = kind == TOKEN_BUCKET and under == window and left >= 0 and (whole < capacity or not value) and now >= at
  and level < window and missing < 9007199254740992
if isDone then
  local resetAt = now + ceil((missing - level) / tokens)
  -- As text, because Redis itself would write a number with all the digits that a double may have, which takes longer.
  call('SET', KEYS[key], pack('<Bdddd', TOKEN_BUCKET, left, level, now, window), endsBy,
    format('%d', ceil((resetAt - endsFrom) / 1000) + endsLater))
  results[length + 1], results[length + 2], results[length + 3] = ALLOWED, left, resetAt
  length = length + 3
end
