-- Adds the counts of one process to the shared counts. Each process calls it about once per second, in batches.
--
-- KEYS   1 `<base>:totals`; all other keys have the same base, whose hash tag keeps them in one slot
-- ARGV   1 now in milliseconds, or '' for the server's time
--        2 number of counts  3 number of keys  4 number of decisions; followed by:
--        counts: field, count  keys: name, requests, rejections  decisions: text, oldest first
--        A field without a bracket is also counted for the current second.
-- result 1
--
-- Clients choose the keys, so all data about keys is bounded: each minute keeps the counts of the most frequent keys, and the
-- set of live keys drops those not seen for a while, or the oldest if there are too many.
local call = redis.call
local base = string.sub(KEYS[1], 1, -7)
local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local minute = base .. string.format('%.0f:', math.floor(now / 60000))
local second = string.format('%.0f:', math.floor(now / 1000))
local count_args, key_args, decision_args = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local keep_minutes, keep_live, keep_totals = 1200000, 900000, 2592000000
local most_counted, most_live, most_recent, most_fields = 2000, 20000, 500, 20000

local at = 5
call('HSETNX', KEYS[1], 'since', string.format('%.0f', now))
for _ = 1, count_args do
  local field, by = ARGV[at], ARGV[at + 1]
  local is_rule = string.sub(field, 1, 1) == '['
  if is_rule and call('HLEN', KEYS[1]) >= most_fields and call('HEXISTS', KEYS[1], field) == 0 then
    field = '["other","other",' .. string.match(field, '[^,]*$')
  end
  call('HINCRBY', KEYS[1], field, by)
  if not is_rule then call('HINCRBY', minute .. 'seconds', second .. field, by) end
  at = at + 2
end
call('PEXPIRE', KEYS[1], keep_totals)
call('PEXPIRE', minute .. 'seconds', keep_minutes)

local function bound(key)
  local size = call('ZCARD', key)
  -- Trims in batches, so that the order of many rare keys does not matter.
  if size > 2 * most_counted then call('ZREMRANGEBYRANK', key, 0, size - most_counted - 1) end
  call('PEXPIRE', key, keep_minutes)
end

local function forget(members)
  for _, member in ipairs(members) do
    call('ZREM', base .. 'live', member)
    call('ZREM', base .. 'names', member)
  end
end

for _ = 1, key_args do
  local member, requests, denied = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  call('ZINCRBY', minute .. 'requests', requests, member)
  if denied ~= '0' then call('ZINCRBY', minute .. 'denied', denied, member) end
  if call('ZADD', base .. 'live', now, member) == 1 then call('ZADD', base .. 'names', 0, member) end
  at = at + 3
end
if key_args > 0 then
  bound(minute .. 'requests')
  bound(minute .. 'denied')
  forget(call('ZRANGEBYSCORE', base .. 'live', '-inf', now - keep_live, 'LIMIT', 0, 200 + key_args))
  local excess = call('ZCARD', base .. 'live') - most_live
  if excess > 0 then forget(call('ZRANGE', base .. 'live', 0, excess - 1)) end
  call('PEXPIRE', base .. 'live', keep_minutes)
  call('PEXPIRE', base .. 'names', keep_minutes)
end

local rejected = 0
for _ = 1, decision_args do
  call('LPUSH', base .. 'recent', ARGV[at])
  -- Rejections have a list of their own, so that allowed decisions do not displace them.
  if string.find(ARGV[at], '"allowed":false', 1, true) then
    call('LPUSH', base .. 'rejected', ARGV[at])
    rejected = rejected + 1
  end
  at = at + 1
end
if rejected > 0 then
  call('LTRIM', base .. 'rejected', 0, most_recent - 1)
  call('PEXPIRE', base .. 'rejected', keep_minutes)
end
if decision_args > 0 then
  call('LTRIM', base .. 'recent', 0, most_recent - 1)
  call('PEXPIRE', base .. 'recent', keep_minutes)
end
return 1
