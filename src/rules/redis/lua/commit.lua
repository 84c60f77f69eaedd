-- Commits a change of a rule set and updates its indexes, if the set still has the expected version. Announces the change in
-- the same step.
--
-- KEYS  1 ids of all rule sets (sorted set)        2 version, removedVersion and head of this set (hash)
--       3 its rules by id (hash)                   4 rule ids by rank: priority, highest first (sorted set)
--       5 ids of disabled rules (set)              6 trigrams, each followed by a rule id (sorted set)
--       7 trigrams of each rule (hash)             8 history by version (sorted set)
--       9 id of the latest change
-- ARGV  1 id of the set   2 version before   3 version after   4 removedVersion   5 head, empty if the set is removed
--       6 channel   7 message   8 maximum number of history entries   9 history entry
--       10 id of this change
--       11 number of rules to write; for each: id, document, rank, 1 if enabled, its trigrams as a JSON list
--       then the ids of rules to remove
-- Result: 1, or 0 if the set has another version
local kinds = {'zset', 'hash', 'hash', 'zset', 'set', 'zset', 'hash', 'zset', 'string'}
--@include check-version.lua

-- First, because ACLs may forbid it. Subscribers receive it after the script has ended.
redis.call('PUBLISH', ARGV[6], ARGV[7])

local zero = string.char(0)
local function removeTrigrams(id)
  local trigrams = redis.call('HGET', KEYS[7], id)
  if trigrams then
    for _, trigram in ipairs(cjson.decode(trigrams)) do redis.call('ZREM', KEYS[6], trigram .. zero .. id) end
  end
end

local at = 12
for _ = 1, tonumber(ARGV[11]) do
  local id, trigrams = ARGV[at], ARGV[at + 4]
  removeTrigrams(id)
  redis.call('HSET', KEYS[3], id, ARGV[at + 1])
  redis.call('ZADD', KEYS[4], ARGV[at + 2], id)
  redis.call(ARGV[at + 3] == '1' and 'SREM' or 'SADD', KEYS[5], id)
  redis.call('HSET', KEYS[7], id, trigrams)
  for _, trigram in ipairs(cjson.decode(trigrams)) do redis.call('ZADD', KEYS[6], 0, trigram .. zero .. id) end
  at = at + 5
end
for i = at, #ARGV do
  removeTrigrams(ARGV[i])
  redis.call('HDEL', KEYS[3], ARGV[i])
  redis.call('ZREM', KEYS[4], ARGV[i])
  redis.call('SREM', KEYS[5], ARGV[i])
  redis.call('HDEL', KEYS[7], ARGV[i])
end

redis.call('HSET', KEYS[2], 'version', ARGV[3], 'removedVersion', ARGV[4])
if ARGV[5] == '' then
  redis.call('HDEL', KEYS[2], 'head')
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[2], 'head', ARGV[5])
  redis.call('ZADD', KEYS[1], 0, ARGV[1])
end
redis.call('ZADD', KEYS[8], ARGV[3], ARGV[9])
redis.call('ZREMRANGEBYRANK', KEYS[8], 0, -tonumber(ARGV[8]) - 1)
redis.call('SET', KEYS[9], ARGV[10])
return 1
