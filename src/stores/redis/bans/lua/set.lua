-- Bans a key by hand. bans.lua describes the value.
--
-- KEYS[1]  the key of the ban
-- ARGV     now (ticks; negative: use the server's clock), the length of the ban or 0, its end, and the longest ban
-- Result   1 if the key was banned before, the end, the number of bans since the escalation started, now; empty if the end is
--          invalid
local now, length, till, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local option, base, margin = 'PXAT', 0, 0
if now >= 0 then option, base, margin = 'PX', now, 86400000
else
  local time = redis.call('TIME')
  now = time[1] * 1000000 + time[2]
end
if length > 0 then till = now + length end
if till <= now or till > now + longest then return {} end
local before, count = 0, 0
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'string' and #value >= 16 then before, count = struct.unpack('<dd', value) end
if now >= before + longest then count = 0 end
local expiry = math.ceil((till + longest - base) / 1000) + margin
redis.call('SET', KEYS[1], struct.pack('<dd', till, count), option, string.format('%d', expiry))
return { before > now and 1 or 0, till, count, now }
