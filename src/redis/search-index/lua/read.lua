--@include header.lua
-- Records that are named, that were written last, or that chance picks.
--
-- ARGV   2 what: GET, RECENT, SAMPLE or COUNT
--        3… of GET ids; of RECENT how many; of SAMPLE how many and, if only tagged ones are wanted, `<field>:tag:<tag>`;
--        of COUNT nothing for all, or the same
-- result as of page.lua, or id and document in turn, or { number }
if not state[1] then return false end
-- A record itself is the same under any definition.
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
