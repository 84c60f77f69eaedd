/** Generated from flush.lua, read.lua by scripts/assemble-lua.mjs; do not edit. */
export const flushScript = {
  sha: '74736da5b2920ad06632b0c59a2aa7cf78fbb743',
  source: `local call = redis.call
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
return 1`,
}

export const readScript = {
  sha: '719bad17a3a7f20b2bf5985157d2b1b8262420d0',
  source: `local call = redis.call
local base = string.sub(KEYS[1], 1, -7)
local now = tonumber(ARGV[1])
if not now then
local time = call('TIME')
now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end
local this_minute = math.floor(now / 60000)
local minutes, minutes_to_half, most_summed = 15, 5, 5000
local what, limit = ARGV[2], tonumber(ARGV[3])
local function of_minute(ago, kind)
return base .. string.format('%.0f:', this_minute - ago) .. kind
end
local function sum_of(kind)
local sum = base .. 'sum:' .. kind .. string.format(':%.0f', math.floor(now / 2000))
if call('EXISTS', sum) == 1 then return sum end
local names, weights = {}, {}
for ago = 0, minutes - 1 do
names[#names + 1] = of_minute(ago, kind)
weights[#weights + 1] = string.format('%.17g', 0.5 ^ (ago / minutes_to_half))
end
local command = { 'ZUNIONSTORE', sum, #names }
for _, name in ipairs(names) do command[#command + 1] = name end
command[#command + 1] = 'WEIGHTS'
for _, weight in ipairs(weights) do command[#command + 1] = weight end
local size = call(unpack(command))
if size > most_summed then call('ZREMRANGEBYRANK', sum, 0, size - most_summed - 1) end
call('PEXPIRE', sum, 4000)
return sum
end
local function rows_of(members)
local requests, denied = sum_of('requests'), sum_of('denied')
local rows = {}
for _, member in ipairs(members) do
rows[#rows + 1] = member
rows[#rows + 1] = call('ZSCORE', requests, member) or '0'
rows[#rows + 1] = call('ZSCORE', denied, member) or '0'
rows[#rows + 1] = call('ZSCORE', base .. 'live', member) or '0'
end
return rows
end
local function found_by_prefix()
local prefix, sum = ARGV[6], sum_of('requests')
local scores, found = {}, {}
local function add(member, score)
if scores[member] then return end
scores[member] = tonumber(score or 0)
found[#found + 1] = member
end
local often = call('ZREVRANGE', sum, 0, 1999, 'WITHSCORES')
for i = 1, #often, 2 do
if string.sub(often[i], 1, #prefix) == prefix then add(often[i], often[i + 1]) end
end
for _, member in ipairs(call('ZRANGEBYLEX', base .. 'names', ARGV[4], ARGV[5], 'LIMIT', 0, 500)) do
if not scores[member] then add(member, call('ZSCORE', sum, member)) end
end
table.sort(found, function(one, other)
if scores[one] ~= scores[other] then return scores[one] > scores[other] end
return one < other
end)
while #found > limit do found[#found] = nil end
return found
end
if what == 'RECENT' then return call('LRANGE', base .. 'recent', 0, limit - 1) end
if what == 'REJECTED' then return call('LRANGE', base .. 'rejected', 0, limit - 1) end
if what == 'TOP' then return rows_of(call('ZREVRANGE', sum_of(ARGV[4]), 0, limit - 1)) end
if what == 'KEYS' then return rows_of(found_by_prefix()) end
if what == 'SAMPLE' then return rows_of(call('ZRANDMEMBER', base .. 'live', limit)) end
local summary = { string.format('%.0f', now), call('HGETALL', KEYS[1]) }
for ago = 5, 0, -1 do summary[#summary + 1] = call('HGETALL', of_minute(ago, 'seconds')) end
return summary`,
}
