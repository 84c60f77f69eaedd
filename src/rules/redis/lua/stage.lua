-- Adds some rules to the keys that are to take the place of those of a set. Each call is short, however many rules there are,
-- because decisions wait for it. Keys that are never used expire.
--
-- KEYS  1 rules by id (hash)   2 their ids by rank (sorted set)   3 the ids of those that are not enabled (set)
--       4 pieces of their text, each with an id behind it (sorted set)   5 the pieces of each rule (hash)
-- ARGV  1 after how many milliseconds the keys expire; then for each rule: id, document, rank, 1 if enabled, its pieces as a
--       JSON list
local zero = string.char(0)
for at = 2, #ARGV, 5 do
  local id = ARGV[at]
  redis.call('HSET', KEYS[1], id, ARGV[at + 1])
  redis.call('ZADD', KEYS[2], ARGV[at + 2], id)
  if ARGV[at + 3] ~= '1' then redis.call('SADD', KEYS[3], id) end
  redis.call('HSET', KEYS[5], id, ARGV[at + 4])
  for _, piece in ipairs(cjson.decode(ARGV[at + 4])) do redis.call('ZADD', KEYS[4], 0, piece .. zero .. id) end
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[1]) end
return 1
