--@include header.lua
--@include terms.lua
-- Returns the most frequent terms with a prefix.
--
-- ARGV   2 number of the field  3 prefix  4 limit
-- result nil, 'CHANGED' or 'REBUILDING' as in page.lua, or { number of terms with the prefix, then alternating terms and
--        frequencies }
if not state[1] then return false end
if state[1] ~= ARGV[1] then return 'CHANGED' end
if state[3] then return 'REBUILDING' end

local key, prefix, limit = name(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local size = call('ZLEXCOUNT', key .. ':terms', lex_range(prefix))
local result = { size }
if size > few then
  local from, to = range_of_tops(prefix)
  for _, place in ipairs(call('ZRANGEBYLEX', key .. ':tops', from, to, 'LIMIT', 0, limit)) do
    local term, count = at_place(prefix, place)
    result[#result + 1] = term
    result[#result + 1] = count
  end
end
if #result == 1 then
  for _, found in ipairs(ranked(key, prefix, few, limit)) do
    result[#result + 1] = found.term
    result[#result + 1] = found.count
  end
end
return result
