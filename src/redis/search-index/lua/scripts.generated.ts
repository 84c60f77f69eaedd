/** Generated from edit.lua, page.lua, suggest.lua, read.lua, turn.lua by scripts/assemble-lua.mjs; do not edit. */
export const editScript = {
  sha: 'e03112bad1f51ea2fae21deb33387078bd5048b8',
  source: `local call = redis.call
local base = string.sub(KEYS[1], 1, -5)
local state = call('HMGET', KEYS[1], 'definition', 'generation', 'rebuilding')
local generation = state[2] or '1'
local function name(rest)
return base .. generation .. ':' .. rest
end
local function parts(value)
local _, finish, own, sequence, length = string.find(value, '^(%d+):(%d+):(%d+):')
local document = finish + tonumber(length) + 1
return own, sequence, string.sub(value, finish + 1, document - 1), string.sub(value, document)
end
local function is_before(one, other)
for i = 1, math.min(#one, #other) do
local a, b = string.byte(one, i), string.byte(other, i)
if a ~= b then return a < b end
end
return #one < #other
end
local function rank_of(key, score, member, including)
local low, high = call('ZCOUNT', key, '-inf', '(' .. score), call('ZCOUNT', key, '-inf', score)
while low < high do
local middle = math.floor((low + high) / 2)
local found = call('ZRANGE', key, middle, middle)[1]
if is_before(found, member) or including and found == member then low = middle + 1 else high = middle end
end
return low
end
local few, kept = 256, 100
local longest = 96
local finish = string.char(0, 1)
local function lex_range(prefix)
for i = #prefix, 1, -1 do
local byte = string.byte(prefix, i)
if byte < 255 then return '[' .. prefix, '(' .. string.sub(prefix, 1, i - 1) .. string.char(byte + 1) end
end
return '[' .. prefix, '+'
end
local function place_of(prefix, term, count)
return prefix .. finish .. string.format('%016.0f', 9007199254740992 - count) .. term
end
local function at_place(prefix, place)
return string.sub(place, #prefix + 19), 9007199254740992 - tonumber(string.sub(place, #prefix + 3, #prefix + 18))
end
local function range_of_tops(prefix)
return '[' .. prefix .. finish, '(' .. prefix .. string.char(0, 2)
end
local function ranked(key, prefix, most, best)
local from, to = lex_range(prefix)
local terms = call('ZRANGEBYLEX', key .. ':terms', from, to, 'LIMIT', 0, most)
if #terms == 0 then return {} end
local counts = call('ZMSCORE', key .. ':ranks', unpack(terms))
local found = {}
for i, term in ipairs(terms) do
local count = -tonumber(counts[i] or 0)
local last = #found == best and found[best]
if count > 0 and not (last and count <= last.count) then
local place = math.min(#found + 1, best)
while place > 1 and found[place - 1].count < count do
found[place] = found[place - 1]
place = place - 1
end
found[place] = { term = term, count = count }
end
end
return found
end
local function ranked_of_many(key, prefix)
local ranks = key .. ':ranks'
local found, at, seen = {}, 0, 0
while #found < kept and seen < 20000 do
local page = call('ZRANGE', ranks, at, at + 499, 'WITHSCORES')
if #page == 0 then break end
seen, at = seen + 500, at + 500
if #page == 1000 and page[2] == page[1000] then
local stop = call('ZCOUNT', ranks, '-inf', page[2])
local from = math.max(rank_of(ranks, page[2], prefix, false), at - 500)
page, at = call('ZRANGE', ranks, from, math.min(from + kept, stop) - 1, 'WITHSCORES'), stop
end
for i = 1, #page, 2 do
if string.sub(page[i], 1, #prefix) == prefix then
found[#found + 1] = { term = page[i], count = -tonumber(page[i + 1]) }
end
end
end
return found
end
local function fill_tops(key, prefix, size, already)
local found = size <= 4000 and ranked(key, prefix, size, kept) or ranked_of_many(key, prefix)
for i = already + 1, math.min(kept, #found) do
call('ZADD', key .. ':tops', 0, place_of(prefix, found[i].term, found[i].count))
end
end
local refilled_at = { [49] = true, [24] = true, [12] = true, [6] = true, [3] = true, [1] = true, [0] = true }
local function change_tops(key, prefix, size, term, before, now)
local tops = key .. ':tops'
local from, to = range_of_tops(prefix)
local last = call('ZREVRANGEBYLEX', tops, to, from, 'LIMIT', 0, 1)[1]
if not last then
if size > few and (size <= 4000 or size % 100 == 0) then fill_tops(key, prefix, size, 0) end
return
end
local last_term, last_count = at_place(prefix, last)
local was_in = before > last_count or before == last_count and not is_before(last_term, term)
if was_in and before > 0 then call('ZREM', tops, place_of(prefix, term, before)) end
local is_in = now > last_count or now == last_count and is_before(term, last_term)
if is_in then
call('ZADD', tops, 0, place_of(prefix, term, now))
if not was_in and call('ZLEXCOUNT', tops, from, to) > kept then call('ZREM', tops, last) end
elseif was_in then
local left = call('ZLEXCOUNT', tops, from, to)
if refilled_at[left] then fill_tops(key, prefix, size, left) end
end
end
local function change_term(key, term, by)
local terms, ranks = key .. ':terms', key .. ':ranks'
local now = -tonumber(call('ZINCRBY', ranks, -by, term))
local before = now - by
if before == 0 then call('ZADD', terms, 0, term) end
if now == 0 then
call('ZREM', ranks, term)
call('ZREM', terms, term)
end
local stop = 0
while stop <= #term and stop <= longest do
local next_byte = string.byte(term, stop + 1) or 0
if next_byte < 128 or next_byte > 191 then
local prefix = string.sub(term, 1, stop)
local size = call('ZLEXCOUNT', terms, lex_range(prefix))
if size > few / 2 then
change_tops(key, prefix, size, term, before, now)
elseif now == 0 and size == few / 2 then
call('ZREMRANGEBYLEX', key .. ':tops', range_of_tops(prefix))
else
return
end
end
stop = stop + 1
end
end
local what, id, document, expected = ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local recent, most, least = tonumber(ARGV[6]), tonumber(ARGV[7]), ARGV[8]
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
local function make_room()
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
return 1`,
}

export const pageScript = {
  sha: '51e7977c4fa3139ceeaa4bfb69a08d3ec0d9f826',
  source: `local call = redis.call
local base = string.sub(KEYS[1], 1, -5)
local state = call('HMGET', KEYS[1], 'definition', 'generation', 'rebuilding')
local generation = state[2] or '1'
local function name(rest)
return base .. generation .. ':' .. rest
end
local function parts(value)
local _, finish, own, sequence, length = string.find(value, '^(%d+):(%d+):(%d+):')
local document = finish + tonumber(length) + 1
return own, sequence, string.sub(value, finish + 1, document - 1), string.sub(value, document)
end
local function is_before(one, other)
for i = 1, math.min(#one, #other) do
local a, b = string.byte(one, i), string.byte(other, i)
if a ~= b then return a < b end
end
return #one < #other
end
local function rank_of(key, score, member, including)
local low, high = call('ZCOUNT', key, '-inf', '(' .. score), call('ZCOUNT', key, '-inf', score)
while low < high do
local middle = math.floor((low + high) / 2)
local found = call('ZRANGE', key, middle, middle)[1]
if is_before(found, member) or including and found == member then low = middle + 1 else high = middle end
end
return low
end
local key = name(ARGV[2] .. ':' .. ARGV[3])
local by_score, ascending = ARGV[3] == 'scores', ARGV[4] == 'ascending'
local limit, first, last, seen_score, seen = tonumber(ARGV[5]), ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local budget = 2000
local function by_ranks()
local from, to = call('ZCOUNT', key, '-inf', first), call('ZCOUNT', key, '-inf', last)
if seen_score ~= '' and ascending then from = math.max(from, rank_of(key, seen_score, seen, true)) end
if seen_score ~= '' and not ascending then to = math.min(to, rank_of(key, seen_score, seen, false)) end
return function(count)
local rows = {}
if from >= to then return rows end
local found
if ascending then
found = call('ZRANGE', key, from, math.min(from + count, to) - 1, 'WITHSCORES')
from = from + count
else
local size = call('ZCARD', key)
found = call('ZREVRANGE', key, size - to, size - math.max(from, to - count) - 1, 'WITHSCORES')
to = to - count
end
for i = 1, #found, 2 do rows[#rows + 1] = { id = found[i], score = found[i + 1], member = found[i] } end
return rows
end
end
local function by_bytes()
local from, to = first, last
return function(count)
local found
if ascending then
found = call('ZRANGEBYLEX', key, from, to, 'LIMIT', 0, count)
if #found > 0 then from = '(' .. found[#found] end
else
found = call('ZREVRANGEBYLEX', key, to, from, 'LIMIT', 0, count)
if #found > 0 then to = '(' .. found[#found] end
end
for i, member in ipairs(found) do
found[i] = { id = string.sub(member, -1 - string.byte(member, -1), -2), score = '0', member = member }
end
return found
end
end
local function is_tagged(id)
for i = 10, #ARGV do
if call('SISMEMBER', name(ARGV[i]), id) == 0 then return false end
end
return true
end
if not state[1] then return false end
if state[1] ~= ARGV[1] then return 'CHANGED' end
if state[3] then return 'REBUILDING' end
local rows_after = by_score and by_ranks() or by_bytes()
local result = { 0, '', '' }
local taken, passed = 0, 0
repeat
local rows = rows_after(limit + 1)
for _, row in ipairs(rows) do
if taken == limit or passed == budget then
result[1] = 1
return result
end
result[2], result[3] = row.score, row.member
local value = is_tagged(row.id) and call('HGET', KEYS[2], row.id)
if value then
taken = taken + 1
result[#result + 1] = row.id
result[#result + 1] = select(4, parts(value))
else
passed = passed + 1
end
end
until #rows <= limit
return result`,
}

export const suggestScript = {
  sha: 'd357a2f66b7f407d1731826bcbbc29d5c42f198a',
  source: `local call = redis.call
local base = string.sub(KEYS[1], 1, -5)
local state = call('HMGET', KEYS[1], 'definition', 'generation', 'rebuilding')
local generation = state[2] or '1'
local function name(rest)
return base .. generation .. ':' .. rest
end
local function parts(value)
local _, finish, own, sequence, length = string.find(value, '^(%d+):(%d+):(%d+):')
local document = finish + tonumber(length) + 1
return own, sequence, string.sub(value, finish + 1, document - 1), string.sub(value, document)
end
local function is_before(one, other)
for i = 1, math.min(#one, #other) do
local a, b = string.byte(one, i), string.byte(other, i)
if a ~= b then return a < b end
end
return #one < #other
end
local function rank_of(key, score, member, including)
local low, high = call('ZCOUNT', key, '-inf', '(' .. score), call('ZCOUNT', key, '-inf', score)
while low < high do
local middle = math.floor((low + high) / 2)
local found = call('ZRANGE', key, middle, middle)[1]
if is_before(found, member) or including and found == member then low = middle + 1 else high = middle end
end
return low
end
local few, kept = 256, 100
local longest = 96
local finish = string.char(0, 1)
local function lex_range(prefix)
for i = #prefix, 1, -1 do
local byte = string.byte(prefix, i)
if byte < 255 then return '[' .. prefix, '(' .. string.sub(prefix, 1, i - 1) .. string.char(byte + 1) end
end
return '[' .. prefix, '+'
end
local function place_of(prefix, term, count)
return prefix .. finish .. string.format('%016.0f', 9007199254740992 - count) .. term
end
local function at_place(prefix, place)
return string.sub(place, #prefix + 19), 9007199254740992 - tonumber(string.sub(place, #prefix + 3, #prefix + 18))
end
local function range_of_tops(prefix)
return '[' .. prefix .. finish, '(' .. prefix .. string.char(0, 2)
end
local function ranked(key, prefix, most, best)
local from, to = lex_range(prefix)
local terms = call('ZRANGEBYLEX', key .. ':terms', from, to, 'LIMIT', 0, most)
if #terms == 0 then return {} end
local counts = call('ZMSCORE', key .. ':ranks', unpack(terms))
local found = {}
for i, term in ipairs(terms) do
local count = -tonumber(counts[i] or 0)
local last = #found == best and found[best]
if count > 0 and not (last and count <= last.count) then
local place = math.min(#found + 1, best)
while place > 1 and found[place - 1].count < count do
found[place] = found[place - 1]
place = place - 1
end
found[place] = { term = term, count = count }
end
end
return found
end
local function ranked_of_many(key, prefix)
local ranks = key .. ':ranks'
local found, at, seen = {}, 0, 0
while #found < kept and seen < 20000 do
local page = call('ZRANGE', ranks, at, at + 499, 'WITHSCORES')
if #page == 0 then break end
seen, at = seen + 500, at + 500
if #page == 1000 and page[2] == page[1000] then
local stop = call('ZCOUNT', ranks, '-inf', page[2])
local from = math.max(rank_of(ranks, page[2], prefix, false), at - 500)
page, at = call('ZRANGE', ranks, from, math.min(from + kept, stop) - 1, 'WITHSCORES'), stop
end
for i = 1, #page, 2 do
if string.sub(page[i], 1, #prefix) == prefix then
found[#found + 1] = { term = page[i], count = -tonumber(page[i + 1]) }
end
end
end
return found
end
local function fill_tops(key, prefix, size, already)
local found = size <= 4000 and ranked(key, prefix, size, kept) or ranked_of_many(key, prefix)
for i = already + 1, math.min(kept, #found) do
call('ZADD', key .. ':tops', 0, place_of(prefix, found[i].term, found[i].count))
end
end
local refilled_at = { [49] = true, [24] = true, [12] = true, [6] = true, [3] = true, [1] = true, [0] = true }
local function change_tops(key, prefix, size, term, before, now)
local tops = key .. ':tops'
local from, to = range_of_tops(prefix)
local last = call('ZREVRANGEBYLEX', tops, to, from, 'LIMIT', 0, 1)[1]
if not last then
if size > few and (size <= 4000 or size % 100 == 0) then fill_tops(key, prefix, size, 0) end
return
end
local last_term, last_count = at_place(prefix, last)
local was_in = before > last_count or before == last_count and not is_before(last_term, term)
if was_in and before > 0 then call('ZREM', tops, place_of(prefix, term, before)) end
local is_in = now > last_count or now == last_count and is_before(term, last_term)
if is_in then
call('ZADD', tops, 0, place_of(prefix, term, now))
if not was_in and call('ZLEXCOUNT', tops, from, to) > kept then call('ZREM', tops, last) end
elseif was_in then
local left = call('ZLEXCOUNT', tops, from, to)
if refilled_at[left] then fill_tops(key, prefix, size, left) end
end
end
local function change_term(key, term, by)
local terms, ranks = key .. ':terms', key .. ':ranks'
local now = -tonumber(call('ZINCRBY', ranks, -by, term))
local before = now - by
if before == 0 then call('ZADD', terms, 0, term) end
if now == 0 then
call('ZREM', ranks, term)
call('ZREM', terms, term)
end
local stop = 0
while stop <= #term and stop <= longest do
local next_byte = string.byte(term, stop + 1) or 0
if next_byte < 128 or next_byte > 191 then
local prefix = string.sub(term, 1, stop)
local size = call('ZLEXCOUNT', terms, lex_range(prefix))
if size > few / 2 then
change_tops(key, prefix, size, term, before, now)
elseif now == 0 and size == few / 2 then
call('ZREMRANGEBYLEX', key .. ':tops', range_of_tops(prefix))
else
return
end
end
stop = stop + 1
end
end
if not state[1] then return false end
if state[1] ~= ARGV[1] then return 'CHANGED' end
if state[3] then return 'REBUILDING' end
local key, prefix, limit = name(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local size = call('ZLEXCOUNT', key .. ':terms', lex_range(prefix))
local result = { size }
if size > few then
local from, to = range_of_tops(prefix)
for _, place in ipairs(call('ZRANGEBYLEX', key .. ':tops', from, to, 'LIMIT', 0, limit)) do
local term, count = at_place(prefix, place)
result[#result + 1] = term
result[#result + 1] = count
end
end
if #result == 1 then
for _, found in ipairs(ranked(key, prefix, few, limit)) do
result[#result + 1] = found.term
result[#result + 1] = found.count
end
end
return result`,
}

export const readScript = {
  sha: '0b6646a308910227e4baab89b51924b40bfd7edc',
  source: `local call = redis.call
local base = string.sub(KEYS[1], 1, -5)
local state = call('HMGET', KEYS[1], 'definition', 'generation', 'rebuilding')
local generation = state[2] or '1'
local function name(rest)
return base .. generation .. ':' .. rest
end
local function parts(value)
local _, finish, own, sequence, length = string.find(value, '^(%d+):(%d+):(%d+):')
local document = finish + tonumber(length) + 1
return own, sequence, string.sub(value, finish + 1, document - 1), string.sub(value, document)
end
local function is_before(one, other)
for i = 1, math.min(#one, #other) do
local a, b = string.byte(one, i), string.byte(other, i)
if a ~= b then return a < b end
end
return #one < #other
end
local function rank_of(key, score, member, including)
local low, high = call('ZCOUNT', key, '-inf', '(' .. score), call('ZCOUNT', key, '-inf', score)
while low < high do
local middle = math.floor((low + high) / 2)
local found = call('ZRANGE', key, middle, middle)[1]
if is_before(found, member) or including and found == member then low = middle + 1 else high = middle end
end
return low
end
if not state[1] then return false end
if ARGV[2] ~= 'GET' then
if state[1] ~= ARGV[1] then return 'CHANGED' end
if state[3] then return 'REBUILDING' end
end
local ids = {}
if ARGV[2] == 'COUNT' then
if ARGV[3] then return { call('SCARD', name(ARGV[3])) } end
return { call('HLEN', KEYS[2]) }
elseif ARGV[2] == 'RECENT' then
ids = call('LRANGE', name('recent'), 0, tonumber(ARGV[3]) - 1)
elseif ARGV[2] == 'SAMPLE' then
ids = ARGV[4] and call('SRANDMEMBER', name(ARGV[4]), ARGV[3]) or call('HRANDFIELD', KEYS[2], ARGV[3])
else
for i = 3, #ARGV do ids[i - 2] = ARGV[i] end
end
local result = {}
for _, id in ipairs(ids) do
local value = call('HGET', KEYS[2], id)
if value then
result[#result + 1] = id
result[#result + 1] = select(4, parts(value))
end
end
return result`,
}

export const turnScript = {
  sha: '4825e95c3a1303fa07df8630fb1eaefc4672c169',
  source: `local call = redis.call
local base = string.sub(KEYS[1], 1, -5)
local state = call('HMGET', KEYS[1], 'definition', 'generation', 'rebuilding')
local generation = state[2] or '1'
local function name(rest)
return base .. generation .. ':' .. rest
end
local function parts(value)
local _, finish, own, sequence, length = string.find(value, '^(%d+):(%d+):(%d+):')
local document = finish + tonumber(length) + 1
return own, sequence, string.sub(value, finish + 1, document - 1), string.sub(value, document)
end
local function is_before(one, other)
for i = 1, math.min(#one, #other) do
local a, b = string.byte(one, i), string.byte(other, i)
if a ~= b then return a < b end
end
return #one < #other
end
local function rank_of(key, score, member, including)
local low, high = call('ZCOUNT', key, '-inf', '(' .. score), call('ZCOUNT', key, '-inf', score)
while low < high do
local middle = math.floor((low + high) / 2)
local found = call('ZRANGE', key, middle, middle)[1]
if is_before(found, member) or including and found == member then low = middle + 1 else high = middle end
end
return low
end
local function next_generation()
generation = string.format('%.0f', tonumber(generation) + 1)
call('HSET', KEYS[1], 'definition', ARGV[1], 'generation', generation)
call('HSETNX', KEYS[1], 'oldest', tonumber(generation) - 1)
end
if ARGV[2] == 'BEGIN' then
if state[1] ~= ARGV[1] or not state[3] then
next_generation()
call('HSET', KEYS[1], 'rebuilding', 1)
end
return generation
end
if ARGV[2] == 'CLEAR' then
next_generation()
call('UNLINK', KEYS[2])
call('HDEL', KEYS[1], 'rebuilding')
return generation
end
if ARGV[2] == 'SWEPT' then
if generation == ARGV[3] then call('HDEL', KEYS[1], 'oldest') else call('HSET', KEYS[1], 'oldest', ARGV[3]) end
return generation
end
if generation ~= ARGV[3] then return 0 end
call('DEL', name('recent'))
local recent = tonumber(ARGV[4])
if recent > 0 then
for _, id in ipairs(call('ZREVRANGE', name('order'), 0, recent - 1)) do call('RPUSH', name('recent'), id) end
end
call('HDEL', KEYS[1], 'rebuilding')
return generation`,
}
