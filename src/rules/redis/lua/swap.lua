-- Commits a change of a rule set like commit.lua, with all rules already in staging keys (stage.lua). The replaced keys are
-- freed in the background, so the call is short for any number of rules.
--
-- KEYS  1 to 9 as in commit.lua   10 to 14 the staging keys of stage.lua
-- ARGV  1 to 10 as in commit.lua, with a head   11 number of rules
-- Result: 1; 0 if the set has another version; -1 if staging keys have expired
local kinds = {'zset', 'hash', 'hash', 'zset', 'set', 'zset', 'hash', 'zset', 'string', 'hash', 'zset', 'set', 'zset', 'hash'}
--@include check-version.lua
if redis.call('HLEN', KEYS[10]) ~= tonumber(ARGV[11]) then return -1 end

redis.call('PUBLISH', ARGV[6], ARGV[7])
for i = 3, 7 do
  local staged = KEYS[7 + i]
  redis.call('UNLINK', KEYS[i])
  if redis.call('EXISTS', staged) == 1 then
    redis.call('RENAME', staged, KEYS[i])
    redis.call('PERSIST', KEYS[i])
  end
end
redis.call('HSET', KEYS[2], 'version', ARGV[3], 'removedVersion', ARGV[4], 'head', ARGV[5])
redis.call('ZADD', KEYS[1], 0, ARGV[1])
redis.call('ZADD', KEYS[8], ARGV[3], ARGV[9])
redis.call('ZREMRANGEBYRANK', KEYS[8], 0, -tonumber(ARGV[8]) - 1)
redis.call('SET', KEYS[9], ARGV[10])
return 1
