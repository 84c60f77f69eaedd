-- Reads bans.
--
-- KEYS     the keys of the bans
-- ARGV[1]  now (ticks; negative: use the server's clock)
-- Result   now (ticks), and the values; 0 for a key without a value
local now = tonumber(ARGV[1])
if now < 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local result = { now }
for i, key in ipairs(KEYS) do
  local value = redis.pcall('GET', key)
  result[i + 1] = type(value) == 'string' and value or 0
end
return result
