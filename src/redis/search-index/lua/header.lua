-- The common header of all search index scripts.
--
-- KEYS 1 is `<base>:meta`, 2 is `<base>:records`. All other keys start with the same base, whose hash tag keeps them in
-- the same slot. They are not declared, because the keys of an edit depend on the record that it replaces.
-- ARGV 1 is the fingerprint of the caller's definition.
--
-- A record is `<generation>:<sequence>:<length of entries>:<entries><document>`. It stores its own index entries, so that
-- they can be removed without knowledge of the caller's definition.
local call = redis.call
local base = string.sub(KEYS[1], 1, -5)
local state = call('HMGET', KEYS[1], 'definition', 'generation', 'rebuilding')
local generation = state[2] or '1'

local function name(rest)
  return base .. generation .. ':' .. rest
end

local function parts(value)
  local _, finish, own, sequence, length = string.find(value, '^(%d+):(%d+):(%d+):')
  local document = finish + tonumber(length) + 1
  return own, sequence, string.sub(value, finish + 1, document - 1), string.sub(value, document)
end

-- Compares bytes like memcmp and sorted sets. Lua compares strings by the locale of the server.
local function is_before(one, other)
  for i = 1, math.min(#one, #other) do
    local a, b = string.byte(one, i), string.byte(other, i)
    if a ~= b then return a < b end
  end
  return #one < #other
end

-- Counts the members of a sorted set before (score, member), and that member itself if `including`. Members with equal
-- scores are in byte order, so a binary search finds the position.
local function rank_of(key, score, member, including)
  local low, high = call('ZCOUNT', key, '-inf', '(' .. score), call('ZCOUNT', key, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local found = call('ZRANGE', key, middle, middle)[1]
    if is_before(found, member) or including and found == member then low = middle + 1 else high = middle end
  end
  return low
end
