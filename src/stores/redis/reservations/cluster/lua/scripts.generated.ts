/** Generated from coordinator.lua by scripts/assemble-lua.mjs; do not edit. */
export const coordinatorScript = {
  sha: '1eca813b4bf20fbb00a2a3a7a48bda5c465ec620',
  source: `local recordFormat = '^(%S+) (%d) (%d+) (%d+) (%d+) '
local expiredTicks = 60000000
local key, action, argument = KEYS[1], ARGV[2], ARGV[3]
local now, option, base, margin = tonumber(ARGV[1]), 'PXAT', 0, 0
if now >= 0 then option, base, margin = 'PX', now, 86400000
else
local time = redis.call('TIME')
now = time[1] * 1000000 + time[2]
end
local function parse(value)
local first, last, attempt, state, madeAt, expiresAt, bytes = string.find(value, recordFormat)
if not first then return nil end
return { attempt = attempt, state = state, madeAt = tonumber(madeAt), expiresAt = tonumber(expiresAt),
text = string.sub(value, last + 1, last + bytes), ending = string.sub(value, last + bytes + 1) }
end
local function write(record, ...)
local head = string.format('%s %s %.0f %.0f %d ', record.attempt, record.state, record.madeAt, record.expiresAt, #record.text)
redis.call('SET', key, head .. record.text .. record.ending, ...)
end
local value = redis.pcall('GET', key)
local record
if value then
record = type(value) == 'string' and parse(value)
if not record then return redis.error_reply('ERR ' .. key .. ' holds something that is not a reservation') end
if now >= record.expiresAt + expiredTicks then record = nil end
end
if action == 'BEGIN' then
if not record then
local expiresAt = now + ARGV[5]
record = { attempt = argument, state = ARGV[4], madeAt = now, expiresAt = expiresAt, text = ARGV[6], ending = '' }
write(record, option, string.format('%d', math.ceil((expiresAt + expiredTicks - base) / 1000) + margin))
end
elseif not record then return {}
elseif action == 'MOVE' then
if record.attempt == argument and record.state == ARGV[4] then
record.state = ARGV[5]
write(record, 'KEEPTTL')
end
elseif action == 'FORGET' then
if record.attempt == argument and (record.state == '0' or record.state == '3') then
redis.call('DEL', key)
return {}
end
elseif action == 'END' and record.state == '1' and now < record.expiresAt then
record.state, record.ending = '2', argument
write(record, 'KEEPTTL')
end
return { record.attempt, tonumber(record.state), record.madeAt, record.text, record.ending }`,
}
