-- Ends the ban of a key and clears its escalation.
--
-- KEYS[1]  the key of the ban
-- ARGV[1]  now (ticks; negative: use the server's clock)
-- Result   1, or 0 without a ban
local now = tonumber(ARGV[1])
if now < 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
local value = redis.pcall('GET', KEYS[1])
if type(value) ~= 'string' or #value < 16 or struct.unpack('<d', value) <= now then return 0 end
return redis.call('DEL', KEYS[1])
