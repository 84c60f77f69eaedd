-- Reads the counts of all processes.
--
-- KEYS   1 `<base>:totals`, as in flush.lua
-- ARGV   1 now in milliseconds, or '' for the server's time
--        2 query: SUMMARY, TOP, KEYS, SAMPLE, RECENT or REJECTED  3 limit
--        4 TOP: requests or denied; KEYS: minimum as in ZRANGEBYLEX  5 KEYS: maximum  6 KEYS: the prefix
-- result SUMMARY: { now, totals, seconds of each minute }, with alternating fields and counts; RECENT, REJECTED: texts, newest first;
--        others: name, requests, rejections and time last seen of each key
--
-- The weight of a minute halves every five minutes. The sum of the minutes is cached for two seconds, so that frequent queries
-- do not cost more.
local call = redis.call
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

-- Frequent keys are always found, wherever they are in the order of names.
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
return summary
