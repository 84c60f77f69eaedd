-- Included by commit.lua and swap.lua. Returns from the script unless all keys have the types in `kinds` and the rule set has the
-- expected version.
for i, kind in ipairs(kinds) do
  local found = redis.call('TYPE', KEYS[i]).ok
  if found ~= 'none' and found ~= kind then
    return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. found)
  end
end
if (redis.call('HGET', KEYS[2], 'version') or '0') ~= ARGV[2] then return 0 end
