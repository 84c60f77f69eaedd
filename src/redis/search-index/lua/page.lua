--@include header.lua
-- One page of records in the order of a field, from where the last page ended.
--
-- ARGV   2 number of the field  3 'scores' or 'places'  4 'ascending' or 'descending'  5 limit
--        6 and 7 the bounds: of ZCOUNT (all below the first, all up to the last), or of ZRANGEBYLEX, behind the cursor
--        8 of scores, where to go on: '' from the start, or the score of the last one seen
--        9 of scores, the last one seen
--        10… tag sets, as `<field>:tag:<tag>`, that an id has to be in
-- result nil if there is nothing at all, 'CHANGED' or 'REBUILDING', or { 1 if there is more, score, the last one seen,
--        then id and document in turn }
local key = name(ARGV[2] .. ':' .. ARGV[3])
local by_score, ascending = ARGV[3] == 'scores', ARGV[4] == 'ascending'
local limit, first, last, seen_score, seen = tonumber(ARGV[5]), ARGV[6], ARGV[7], ARGV[8], ARGV[9]
-- Of records without the tags that are asked for, no more than this are passed over in one call.
local budget = 2000

local function by_ranks()
  local from, to = call('ZCOUNT', key, '-inf', first), call('ZCOUNT', key, '-inf', last)
  if seen_score ~= '' and ascending then from = math.max(from, rank_of(key, seen_score, seen, true)) end
  if seen_score ~= '' and not ascending then to = math.min(to, rank_of(key, seen_score, seen, false)) end
  return function(count)
    local rows = {}
    if from >= to then return rows end
    local found
    if ascending then
      found = call('ZRANGE', key, from, math.min(from + count, to) - 1, 'WITHSCORES')
      from = from + count
    else
      local size = call('ZCARD', key)
      found = call('ZREVRANGE', key, size - to, size - math.max(from, to - count) - 1, 'WITHSCORES')
      to = to - count
    end
    for i = 1, #found, 2 do rows[#rows + 1] = { id = found[i], score = found[i + 1], member = found[i] } end
    return rows
  end
end

local function by_bytes()
  local from, to = first, last
  return function(count)
    local found
    if ascending then
      found = call('ZRANGEBYLEX', key, from, to, 'LIMIT', 0, count)
      if #found > 0 then from = '(' .. found[#found] end
    else
      found = call('ZREVRANGEBYLEX', key, to, from, 'LIMIT', 0, count)
      if #found > 0 then to = '(' .. found[#found] end
    end
    -- The id is at the end, and its length in the last byte.
    for i, member in ipairs(found) do
      found[i] = { id = string.sub(member, -1 - string.byte(member, -1), -2), score = '0', member = member }
    end
    return found
  end
end

local function is_tagged(id)
  for i = 10, #ARGV do
    if call('SISMEMBER', name(ARGV[i]), id) == 0 then return false end
  end
  return true
end

if not state[1] then return false end
if state[1] ~= ARGV[1] then return 'CHANGED' end
if state[3] then return 'REBUILDING' end

local rows_after = by_score and by_ranks() or by_bytes()
local result = { 0, '', '' }
local taken, passed = 0, 0
repeat
  -- One more than is wanted tells whether there is another page.
  local rows = rows_after(limit + 1)
  for _, row in ipairs(rows) do
    if taken == limit or passed == budget then
      result[1] = 1
      return result
    end
    result[2], result[3] = row.score, row.member
    local value = is_tagged(row.id) and call('HGET', KEYS[2], row.id)
    if value then
      taken = taken + 1
      result[#result + 1] = row.id
      result[#result + 1] = select(4, parts(value))
    else
      passed = passed + 1
    end
  end
until #rows <= limit
return result
