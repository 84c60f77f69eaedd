-- Extends all locks of one hold, or none if the hold has lost one of them.
-- KEYS  for each lock: lock, fence, holds
-- ARGV  owner, id of the hold, lease in ms, retention of a fence in ms, minimum of the stored fences (0: unchanged)
-- Returns 1, or 0 if the hold is lost
local owner, id, leaseMs, fenceMs, floor = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
for i = 1, #KEYS, 3 do
  local value = redis.call('GET', KEYS[i])
  if not value or string.match(value, '^%d+:(.*)$') ~= owner then return 0 end
  if redis.call('HEXISTS', KEYS[i + 2], id) == 0 then return 0 end
end
for i = 1, #KEYS, 3 do
  -- Another hold of the same owner may have a longer lease.
  local ttl = math.max(leaseMs, redis.call('PTTL', KEYS[i]))
  redis.call('PEXPIRE', KEYS[i], ttl)
  redis.call('PEXPIRE', KEYS[i + 2], ttl)
  if floor > (tonumber(redis.call('GET', KEYS[i + 1])) or 0) then
    redis.call('SET', KEYS[i + 1], string.format('%.0f', floor), 'PX', fenceMs)
  end
end
return 1
