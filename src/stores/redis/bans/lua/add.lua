-- Adds bans to the index of a rule, and removes those that have ended.
--
-- KEYS     a sorted set of the keys, by their bytes, and one of the same keys by the end of their ban
-- ARGV     now (ms; negative: use the server's clock), the most keys of an index, then per ban: its key and its end (ms)
local now, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local command, base, margin = 'PEXPIREAT', 0, 0
if now >= 0 then command, base, margin = 'PEXPIRE', now, 86400000
else
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
-- Bounded, because Redis serves no other client during a call.
local removedPerCall = 500

local function remove(keys)
  if #keys == 0 then return end
  redis.call('ZREM', KEYS[1], unpack(keys))
  redis.call('ZREM', KEYS[2], unpack(keys))
end

for i = 3, #ARGV, 2 do
  redis.call('ZADD', KEYS[1], 0, ARGV[i])
  -- A ban that another process writes late must not end a later one. A reader checks every ban.
  redis.call('ZADD', KEYS[2], 'GT', ARGV[i + 1], ARGV[i])
end
remove(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, removedPerCall))
local excess = redis.call('ZCARD', KEYS[2]) - most
if excess > 0 then remove(redis.call('ZRANGE', KEYS[2], 0, math.min(excess, removedPerCall) - 1)) end
local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
if last then
  for _, name in ipairs(KEYS) do redis.call(command, name, string.format('%d', last - base + margin)) end
end
