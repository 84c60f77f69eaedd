-- Stores terms with frequencies, so that the most frequent terms of any prefix are found without reading all terms.
--
--   <key>:terms  sorted set of all terms, in byte order
--   <key>:ranks  sorted set of all terms, scored by negative frequency: most frequent first, then in byte order
--   <key>:tops   sorted set in byte order of: prefix, 0 1, 2^53 - frequency in 16 digits, term
--
-- For a prefix with few terms, all of them are read. A prefix with many terms has a list in tops, which always contains
-- exactly its highest-ranked terms. A term that ranks after the last one is not added, because other terms may rank
-- between the two. When a list has become short, it is refilled.
local few, kept = 256, 100
-- Longer prefixes, in bytes, have no list in tops.
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

-- Returns the `best` highest-ranked of the first `most` terms of a prefix, in rank order. An insertion sort suffices,
-- because most terms do not rank before the last one found.
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
      -- Terms arrive in byte order, so terms with equal frequencies keep their order.
      while place > 1 and found[place - 1].count < count do
        found[place] = found[place - 1]
        place = place - 1
      end
      found[place] = { term = term, count = count }
    end
  end
  return found
end

-- Searches all terms from the most frequent one downwards, within a limit. The result is exact, but may be incomplete. If
-- many terms have the same frequency, the terms of the prefix are adjacent and are looked up directly.
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

-- List lengths at which a refill is tried. Refilling on every removal would be wasteful if there are no more terms.
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
    -- Skips positions inside a multi-byte character.
    if next_byte < 128 or next_byte > 191 then
      local prefix = string.sub(term, 1, stop)
      local size = call('ZLEXCOUNT', terms, lex_range(prefix))
      if size > few / 2 then
        change_tops(key, prefix, size, term, before, now)
      elseif now == 0 and size == few / 2 then
        -- The prefix has just dropped to few terms. Longer prefixes are handled by the next iterations.
        call('ZREMRANGEBYLEX', key .. ':tops', range_of_tops(prefix))
      else
        return
      end
    end
    stop = stop + 1
  end
end
