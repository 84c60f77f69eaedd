-- Reads one rule set, or all of them, from one moment.
--
-- KEYS  1 the ids of all sets   2 the name of the latest change
-- ARGV  1 what the keys of sets begin with: `head:`, `rules:` and an id follow
--       2 the name of the latest change that the caller knows, or empty
--       3 the id of the set, or empty for all
--       4 up to how many rules are read here; those of larger sets are for the caller to read in parts
-- Result: the name of the latest change, empty if there was none; and unless that is known, for each set: id, version,
-- removedVersion, head, and its rules, or how many there are
local latest = redis.call('GET', KEYS[2]) or ''
local result = {latest}
if latest ~= '' and latest == ARGV[2] then return result end
for _, id in ipairs(ARGV[3] ~= '' and {ARGV[3]} or redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local version, removed, head = unpack(redis.call('HMGET', ARGV[1] .. 'head:' .. id, 'version', 'removedVersion', 'head'))
  local rules = redis.call('HLEN', ARGV[1] .. 'rules:' .. id)
  if rules <= tonumber(ARGV[4]) then rules = redis.call('HVALS', ARGV[1] .. 'rules:' .. id) end
  result[#result + 1] = {id, version or '0', removed or '0', head or '', rules}
end
return result
