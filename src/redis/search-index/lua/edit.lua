--@include header.lua
--@include terms.lua
-- Edits one record and its index entries atomically.
--
-- ARGV   2 operation: PUT, INSERT, REPLACE, REMOVE, REINDEX
--        3 id  4 document  5 expected current document (REPLACE and REINDEX)
--        6 length of the recent list  7 maximum number of records
--        8 field whose smallest value is evicted, or '' to evict the oldest record
--        9… entries, three values each: letter and field, text, number
-- result 1 if the edit was made, 0 if not, 'CHANGED' if the definition differs
local what, id, document, expected = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local recent, most, least = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]

-- `op` is a letter and the number of the field: n score, l position in byte order, t tag, w weight of a term.
local function field_of(op)
  return name(string.sub(op, 2))
end

local put = {
  n = function(op, _, score) call('ZADD', field_of(op) .. ':scores', score, id) end,
  l = function(op, member) call('ZADD', field_of(op) .. ':places', 0, member) end,
  t = function(op, tag)
    call('SADD', field_of(op) .. ':tag:' .. tag, id)
    call('HINCRBY', field_of(op) .. ':tags', tag, 1)
  end,
  w = function(op, term, weight) change_term(field_of(op), term, tonumber(weight)) end,
}

local take = {
  n = function(op, _, _, owner) call('ZREM', field_of(op) .. ':scores', owner) end,
  l = function(op, member) call('ZREM', field_of(op) .. ':places', member) end,
  t = function(op, tag, _, owner)
    call('SREM', field_of(op) .. ':tag:' .. tag, owner)
    if call('HINCRBY', field_of(op) .. ':tags', tag, -1) == 0 then call('HDEL', field_of(op) .. ':tags', tag) end
  end,
  w = function(op, term, weight) change_term(field_of(op), term, -tonumber(weight)) end,
}

-- Writes only the entries that differ.
local function replace_entries(owner, old, new)
  local wanted = {}
  for i = 1, #new, 3 do wanted[new[i] .. ' ' .. new[i + 1]] = i end
  for i = 1, #old, 3 do
    local op, text, number = old[i], old[i + 1], old[i + 2]
    local at = wanted[op .. ' ' .. text]
    if not at then
      take[string.sub(op, 1, 1)](op, text, number, owner)
    elseif new[at + 2] == number then
      wanted[op .. ' ' .. text] = nil
    elseif string.sub(op, 1, 1) == 'w' then
      change_term(field_of(op), text, tonumber(new[at + 2]) - tonumber(number))
      wanted[op .. ' ' .. text] = nil
    end
  end
  for i = 1, #new, 3 do
    if wanted[new[i] .. ' ' .. new[i + 1]] then put[string.sub(new[i], 1, 1)](new[i], new[i + 1], new[i + 2]) end
  end
end

-- The list always contains the newest records by `order`. A removed record is replaced by the next one.
local function leave_recent(owner)
  if recent > 0 and call('LREM', name('recent'), 1, owner) == 1 then
    local next_one = call('ZREVRANGE', name('order'), recent - 1, recent - 1)[1]
    if next_one then call('RPUSH', name('recent'), next_one) end
  end
end

local function forget(owner, entries)
  replace_entries(owner, entries, {})
  call('ZREM', name('order'), owner)
  leave_recent(owner)
  call('HDEL', KEYS[2], owner)
end

local function entries_of(value)
  local own, _, packed = parts(value)
  return own == generation and cmsgpack.unpack(packed) or {}
end

-- Runs before a new record is inserted, so that the new record is not evicted.
local function make_room()
  -- Evicts a few records per edit if the maximum was lowered.
  for _ = 1, 8 do
    if call('HLEN', KEYS[2]) < most then return end
    local first = least ~= '' and call('ZRANGE', name(least .. ':scores'), 0, 0)[1]
    local victim = first or call('ZRANGE', name('order'), 0, 0)[1]
    local value = victim and call('HGET', KEYS[2], victim)
    if not value then return end
    forget(victim, entries_of(value))
  end
end

if not state[1] then
  call('HSET', KEYS[1], 'definition', ARGV[1], 'generation', generation)
elseif state[1] ~= ARGV[1] then
  return 'CHANGED'
end

local value = call('HGET', KEYS[2], id)
local old, sequence = {}, nil
if value then
  local own, its_sequence, packed, its_document = parts(value)
  if what == 'INSERT' then return 0 end
  if (what == 'REPLACE' or what == 'REINDEX') and its_document ~= expected then return 0 end
  if own == generation then
    if what == 'REINDEX' then return 1 end
    old = cmsgpack.unpack(packed)
  end
  if what == 'REINDEX' then sequence = its_sequence end
elseif what ~= 'PUT' and what ~= 'INSERT' then
  return 0
end

if what == 'REMOVE' then
  call('HINCRBY', KEYS[1], 'sequence', 1)
  forget(id, old)
  return 1
end

local new = {}
for i = 9, #ARGV do new[i - 8] = ARGV[i] end
sequence = sequence or string.format('%.0f', call('HINCRBY', KEYS[1], 'sequence', 1))
if not value then make_room() end
replace_entries(id, old, new)
local packed = cmsgpack.pack(new)
call('HSET', KEYS[2], id, generation .. ':' .. sequence .. ':' .. #packed .. ':' .. packed .. document)
call('ZADD', name('order'), sequence, id)
if recent > 0 and what ~= 'REINDEX' then
  call('LREM', name('recent'), 1, id)
  call('LPUSH', name('recent'), id)
  call('LTRIM', name('recent'), 0, recent - 1)
end
return 1
