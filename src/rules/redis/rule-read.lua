-- Reads one rule set, or all of them, from one moment.
--
-- KEYS  1 the ids of all sets   2 how often anything was changed
-- ARGV  1 what the keys of sets begin with: `head:`, `rules:` and an id follow
--       2 the number of changes that the caller knows already, or empty
--       3 the id of the set, or left out
-- Result: the number of changes; and unless that is known, for each set: id, version, removedVersion, head, its rules
local changes = redis.call('GET', KEYS[2]) or '0'
if changes == ARGV[2] then return {changes} end
local result = {changes}
for _, id in ipairs(ARGV[3] and {ARGV[3]} or redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local version, removed, head = unpack(redis.call('HMGET', ARGV[1] .. 'head:' .. id, 'version', 'removedVersion', 'head'))
  result[#result + 1] = {id, version or '0', removed or '0', head or '', redis.call('HVALS', ARGV[1] .. 'rules:' .. id)}
end
return result
