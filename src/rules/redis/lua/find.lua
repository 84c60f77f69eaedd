-- Finds rules of a set in the order of rank (highest priority first, then id) after a position. Returns those that have all given
-- trigrams, and those whose text is too long to be indexed.
--
-- KEYS  1 head of the set   2 its rules   3 rule ids by rank   4 ids of disabled rules   5 trigrams
-- ARGV  1 limit   2 enabled: 1, 0, or empty for both   3 and 4 rank and id to start after, or empty
--       then the trigrams; none for any text
-- Result: nil if the set does not exist, else documents
if redis.call('HEXISTS', KEYS[1], 'head') == 0 then return false end
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
end
