--@include header.lua
-- Returns records by id, the newest records, random records, or the number of records.
--
-- ARGV   2 operation: GET, RECENT, SAMPLE or COUNT
--        3… GET: ids. RECENT: limit. SAMPLE: limit and optionally `<field>:tag:<tag>`. COUNT: optionally `<field>:tag:<tag>`
-- result nil, 'CHANGED' or 'REBUILDING' as in page.lua, or alternating ids and documents, or { count }
if not state[1] then return false end
-- GET does not depend on the definition.
if ARGV[2] ~= 'GET' then
  if state[1] ~= ARGV[1] then return 'CHANGED' end
  if state[3] then return 'REBUILDING' end
end

local ids = {}
if ARGV[2] == 'COUNT' then
  if ARGV[3] then return { call('SCARD', name(ARGV[3])) } end
  return { call('HLEN', KEYS[2]) }
elseif ARGV[2] == 'RECENT' then
  ids = call('LRANGE', name('recent'), 0, tonumber(ARGV[3]) - 1)
elseif ARGV[2] == 'SAMPLE' then
  ids = ARGV[4] and call('SRANDMEMBER', name(ARGV[4]), ARGV[3]) or call('HRANDFIELD', KEYS[2], ARGV[3])
else
  for i = 3, #ARGV do ids[i - 2] = ARGV[i] end
end

local result = {}
for _, id in ipairs(ids) do
  local value = call('HGET', KEYS[2], id)
  if value then
    result[#result + 1] = id
    result[#result + 1] = select(4, parts(value))
  end
end
return result
