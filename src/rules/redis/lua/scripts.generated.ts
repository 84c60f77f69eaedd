/** Generated from commit.lua, find.lua, read.lua, stage.lua, swap.lua by scripts/assemble-lua.mjs; do not edit. */
export const commitScript = {
  sha: 'c8d5566c624026f1f1dea475bba3d68f6efa2818',
  source: `local kinds = {'zset', 'hash', 'hash', 'zset', 'set', 'zset', 'hash', 'zset', 'string'}
for i, kind in ipairs(kinds) do
local found = redis.call('TYPE', KEYS[i]).ok
if found ~= 'none' and found ~= kind then
return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. found)
end
end
if (redis.call('HGET', KEYS[2], 'version') or '0') ~= ARGV[2] then return 0 end
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
return 1`,
}

export const findScript = {
  sha: '7ae25e1c17446733b87a7ab8b8e2afc03ed49468',
  source: `if redis.call('HEXISTS', KEYS[1], 'head') == 0 then return false end
local limit, zero = tonumber(ARGV[1]), string.char(0)
local found = {}
local function isFull(id)
local isWanted = ARGV[2] == '' or redis.call('SISMEMBER', KEYS[4], id) == (ARGV[2] == '0' and 1 or 0)
if isWanted then found[#found + 1] = redis.call('HGET', KEYS[2], id) end
return #found == limit
end
local function addOwners(trigram, owners)
local last = string.char(255)
for _, member in ipairs(redis.call('ZRANGEBYLEX', KEYS[5], '[' .. trigram, '(' .. trigram .. last)) do
owners[string.match(member, '[^%z]*$')] = true
end
return owners
end
if #ARGV > 4 then
local owners
for i = 5, #ARGV do
local ofPiece = addOwners(ARGV[i], addOwners(zero, {}))
for id in pairs(owners or {}) do
if not ofPiece[id] then owners[id] = nil end
end
owners = owners or ofPiece
end
local ranked = {}
for id in pairs(owners) do
local rank = tonumber(redis.call('ZSCORE', KEYS[3], id))
local isAfter = ARGV[4] == '' or rank > tonumber(ARGV[3]) or (rank == tonumber(ARGV[3]) and id > ARGV[4])
if isAfter then ranked[#ranked + 1] = {rank, id} end
end
table.sort(ranked, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
for _, one in ipairs(ranked) do
if isFull(one[2]) then break end
end
return found
end
local start = 0
if ARGV[4] ~= '' then
start = redis.call('ZCOUNT', KEYS[3], '-inf', '(' .. ARGV[3])
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], ARGV[3], ARGV[3])) do
if id <= ARGV[4] then start = start + 1 end
end
end
while true do
local ids = redis.call('ZRANGE', KEYS[3], start, start + 99)
for _, id in ipairs(ids) do
if isFull(id) then return found end
end
if #ids < 100 then return found end
start = start + 100
end`,
}

export const readScript = {
  sha: 'f22d73530aa3b27e50d035eee8592d93fb19b067',
  source: `local latest = redis.call('GET', KEYS[2]) or ''
local result = {latest}
if latest ~= '' and latest == ARGV[2] then return result end
for _, id in ipairs(ARGV[3] ~= '' and {ARGV[3]} or redis.call('ZRANGE', KEYS[1], 0, -1)) do
local version, removed, head = unpack(redis.call('HMGET', ARGV[1] .. 'head:' .. id, 'version', 'removedVersion', 'head'))
local rules = redis.call('HLEN', ARGV[1] .. 'rules:' .. id)
if rules <= tonumber(ARGV[4]) then rules = redis.call('HVALS', ARGV[1] .. 'rules:' .. id) end
result[#result + 1] = {id, version or '0', removed or '0', head or '', rules}
end
return result`,
}

export const stageScript = {
  sha: 'f6492f08919c8a62f0050759fb5fb3c637e6855f',
  source: `local zero = string.char(0)
for at = 2, #ARGV, 5 do
local id = ARGV[at]
redis.call('HSET', KEYS[1], id, ARGV[at + 1])
redis.call('ZADD', KEYS[2], ARGV[at + 2], id)
if ARGV[at + 3] ~= '1' then redis.call('SADD', KEYS[3], id) end
redis.call('HSET', KEYS[5], id, ARGV[at + 4])
for _, trigram in ipairs(cjson.decode(ARGV[at + 4])) do redis.call('ZADD', KEYS[4], 0, trigram .. zero .. id) end
end
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[1]) end
return 1`,
}

export const swapScript = {
  sha: '0067b970acb29dc14b88efcaa2adc1c01f21ee83',
  source: `local kinds = {'zset', 'hash', 'hash', 'zset', 'set', 'zset', 'hash', 'zset', 'string', 'hash', 'zset', 'set', 'zset', 'hash'}
for i, kind in ipairs(kinds) do
local found = redis.call('TYPE', KEYS[i]).ok
if found ~= 'none' and found ~= kind then
return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' holds a ' .. found)
end
end
if (redis.call('HGET', KEYS[2], 'version') or '0') ~= ARGV[2] then return 0 end
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
return 1`,
}
