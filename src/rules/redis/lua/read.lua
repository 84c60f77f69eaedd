-- Reads a consistent snapshot of one rule set or of all.
--
-- KEYS  1 ids of all rule sets   2 id of the latest change
-- ARGV  1 key prefix of rule sets, followed by `head:` or `rules:` and an id
--       2 id of the latest change that the caller knows, or empty
--       3 id of the rule set, or empty for all
--       4 maximum number of rules to read; the caller reads the rules of larger sets in parts
-- Result: id of the latest change, empty if there was none. Unless the caller knows it, for each set: id, version,
-- removedVersion, head, and its rules or their number
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
