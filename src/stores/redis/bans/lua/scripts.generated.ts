/** Generated from set.lua, lift.lua, read.lua, add.lua by scripts/assemble-lua.mjs; do not edit. */
export const setScript = {
  sha: 'fd73fb1eeb4f4daa88ed3eeac030cec6ec20999c',
  source: `local now, length, till, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
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
return { before > now and 1 or 0, till, count, now }`,
}

export const liftScript = {
  sha: 'f9cb0929976ee06701d3ccd2ed9ebbf9da6eb890',
  source: `local now = tonumber(ARGV[1])
if now < 0 then
local time = redis.call('TIME')
now = time[1] * 1000000 + time[2]
end
local value = redis.pcall('GET', KEYS[1])
if type(value) ~= 'string' or #value < 16 or struct.unpack('<d', value) <= now then return 0 end
return redis.call('DEL', KEYS[1])`,
}

export const readScript = {
  sha: '3a0e025ebb0a74e0eebc5f7db99c2a86d8eb1c02',
  source: `local now = tonumber(ARGV[1])
if now < 0 then
local time = redis.call('TIME')
now = time[1] * 1000000 + time[2]
end
local result = { now }
for i, key in ipairs(KEYS) do
local value = redis.pcall('GET', key)
result[i + 1] = type(value) == 'string' and value or 0
end
return result`,
}

export const addScript = {
  sha: 'c45ca6f214c3acf3041596c4870163d9c0d16308',
  source: `local now, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local command, base, margin = 'PEXPIREAT', 0, 0
if now >= 0 then command, base, margin = 'PEXPIRE', now, 86400000
else
local time = redis.call('TIME')
now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local removedPerCall = 500
local function remove(keys)
if #keys == 0 then return end
redis.call('ZREM', KEYS[1], unpack(keys))
redis.call('ZREM', KEYS[2], unpack(keys))
end
for i = 3, #ARGV, 2 do
redis.call('ZADD', KEYS[1], 0, ARGV[i])
redis.call('ZADD', KEYS[2], 'GT', ARGV[i + 1], ARGV[i])
end
remove(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, removedPerCall))
local excess = redis.call('ZCARD', KEYS[2]) - most
if excess > 0 then remove(redis.call('ZRANGE', KEYS[2], 0, math.min(excess, removedPerCall) - 1)) end
local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')[2]
if last then
for _, name in ipairs(KEYS) do redis.call(command, name, string.format('%d', last - base + margin)) end
end`,
}
