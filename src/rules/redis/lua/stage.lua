-- Adds rules to staging keys, which later replace the keys of a rule set. Each call is short for any number of rules, because
-- it blocks decisions. Unused staging keys expire.
--
-- KEYS  1 rules by id (hash)   2 rule ids by rank (sorted set)   3 ids of disabled rules (set)
--       4 trigrams, each followed by a rule id (sorted set)   5 trigrams of each rule (hash)
-- ARGV  1 expiry of the keys in milliseconds; then for each rule: id, document, rank, 1 if enabled, its trigrams as a
--       JSON list
local zero = string.char(0)
for at = 2, #ARGV, 5 do
  local id = ARGV[at]
  redis.call('HSET', KEYS[1], id, ARGV[at + 1])
  redis.call('ZADD', KEYS[2], ARGV[at + 2], id)
  if ARGV[at + 3] ~= '1' then redis.call('SADD', KEYS[3], id) end
  redis.call('HSET', KEYS[5], id, ARGV[at + 4])
  for _, trigram in ipairs(cjson.decode(ARGV[at + 4])) do redis.call('ZADD', KEYS[4], 0, trigram .. zero .. id) end
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[1]) end
return 1
