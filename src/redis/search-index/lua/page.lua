--@include header.lua
-- Returns one page of records in the order of a field, starting after the previous page.
--
-- ARGV   2 number of the field  3 'scores' or 'places'  4 'ascending' or 'descending'  5 limit
--        6 and 7 bounds: of ZCOUNT (all below the first, all up to the last), or of ZRANGEBYLEX after the cursor
--        8 for scores: the score of the last member of the previous page, or '' for the first page
--        9 for scores: the last member of the previous page
--        10… tag sets that must contain the id, as `<field>:tag:<tag>`
-- result nil if the index is empty, 'CHANGED', 'REBUILDING', or { 1 if there are more pages, last score, last member,
--        then alternating ids and documents }
local key = name(ARGV[2] .. ':' .. ARGV[3])
local by_score, ascending = ARGV[3] == 'scores', ARGV[4] == 'ascending'
local limit, first, last, seen_score, seen = tonumber(ARGV[5]), ARGV[6], ARGV[7], ARGV[8], ARGV[9]
-- The maximum number of records without the requested tags that one call skips.
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
    -- A member ends with the id and the length of the id in one byte.
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
  -- Reads one more than the limit to find out whether there is another page.
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
