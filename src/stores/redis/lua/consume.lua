-- Decides in one call: reads every bucket, steps every band, writes all of a decision or nothing. Decisions follow each
-- other in the order given, each on what those before it have left behind.
--
-- KEYS     the buckets of all decisions, each once: first those that are a few numbers, and of rules with overrides the last
--          edit of one; then logs; then per lookup the hash of the override
-- ARGV[1]  doubles, little endian:
--            now (ticks; below 0: the server's own time), how many keys are not logs, bands, entries
--            per band: kind, capacity, tokens, window
--            per entry: what (below);
--              RUN, charges that ask the same, each of buckets that no other decision names: how many, bands of each, the first
--                key, which the others follow
--                per band: permits, maxWaitTicks, band
--              PLAIN, a charge without shadows: bands
--                per band: permits, maxWaitTicks, key, band
--              else (RESET forgets the buckets, BACKDATE corrects when they were written): whether no other decision names any of its keys, and none is a log; demands
--                per demand: permits, maxWaitTicks, whether it is a shadow (LEASE: permits wanted at most), bands;
--                  BACKDATE: the instant that the bucket counts from, in place of permits
--                  per band: key, band, an instant (REFUND: when granted, below 0: now; SETTLE: when the lease ends; BACKDATE: the
--                    one that it counts from then, below 0: as before)
-- ARGV[2…] of rules with overrides alone: the last edit that the caller knows of; and what to look up, described in overrides.lua
-- Result   doubles as above; or if some decisions could not be made, a list of these and, in order, why not:
--            now; then per decision, where bands are told from the last to the first:
--            ALLOWED   every band allows at once; per band: remaining, resetAt
--            GRANTED   or done; RUN, PLAIN, CHARGE, PEEK, LEASE: per band retryAfter (0 allowed, -1 never), delay, remaining, resetAt;
--                      LEASE: how many permits, and until when they may be spent
--            REFUSED   per band the same; RUN, PLAIN, CHARGE, PEEK: how many numbers its state is (-1: not told), and four
--                      numbers; of a log, the tick until which it stays as it is, the instant that it counts from, and two
--                      more. If time has stepped back the bucket was moved along: then instead of how many, the instant
--                      that it counted from
--            UNABLE    nothing follows
--          if overrides were found, a list of all that, whose last item is a list of these; or if there
--          was another edit: STALE and that edit, and nothing was done
--
-- The whole text runs for every call. So functions are made where they are needed, and not before: each that could see what is
-- local here would cost every call about a microsecond.
local PLAIN, CHARGE, PEEK, REFUND, LEASE, RESET, RUN = 0, 1, 2, 3, 4, 6, 7
local REFUSED, GRANTED, UNABLE, ALLOWED = 0, 1, 2, 3
local TOKEN_BUCKET = 1
local call, pack, unpackNumbers = redis.call, struct.pack, struct.unpack
local floor, ceil, never, format = math.floor, math.ceil, math.huge, string.format
local kindsOfBuckets, noBucket = 6, 'holds something that is not a bucket'

-- Read

local input = ARGV[1]
-- Lua takes some thousands of values from a function at once.
local most = 4000
local numbers = { unpackNumbers('<' .. string.rep('d', math.min(most, #input / 8)), input) }
for from = most, #input / 8 - 1 do numbers[from + 1] = unpackNumbers('<d', input, from * 8 + 1) end
local now, cellKeys, bandCount, entryCount = numbers[1], numbers[2], numbers[3], numbers[4]
local place = 4 + 4 * bandCount
-- When buckets end. A clock that is given is not the server's, so what the server forgets by its own must outlast it.
local endsBy, endsFrom, endsLater = 'PXAT', 0, 0
if now >= 0 then endsBy, endsFrom, endsLater = 'PX', now, 86400000
else
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local values = cellKeys > 0 and call('MGET', unpack(KEYS, 1, cellKeys))

local bands

-- Of rules with overrides: those that were found, and what became of them.
local applied
if ARGV[2] then
  -- What the caller knows of overrides is as of an edit; if there was another, it may be about nothing that is so any more.
  local edit = values[cellKeys] or ''
  if edit ~= ARGV[2] then return { 'STALE', edit } end
  local lookups = ARGV[3] and (#ARGV[3] - 8) / 40 or 0
  local hashes, found = #KEYS - lookups, nil
  for i = 1, lookups do
    local value = call('HGET', KEYS[hashes + i], ARGV[3 + i])
    if value then
      found = found or {}
      found[i] = value
    end
  end
  if found or ARGV[4 + lookups] then
    --@make applied overrides.lua
  end
end

-- Decide

local results, length = { now }, 1

-- For all but what is asked for most often.
local rare

for _ = 1, entryCount do
  local what, decisions, count, key = numbers[place + 1], numbers[place + 2], numbers[place + 3], numbers[place + 4]
  local terms, isRun = place + 4, what == RUN
  local about = isRun and count == 1 and numbers[terms + 3]
  -- A token bucket that allows, that is.
  local isUsual = about and about <= bandCount and numbers[4 * about + 1] == TOKEN_BUCKET and numbers[terms + 1] > 0
  local permits, capacity, tokens, window
  if isUsual then
    permits, capacity = numbers[terms + 1], numbers[4 * about + 2]
    tokens, window = numbers[4 * about + 3], numbers[4 * about + 4]
  end
  if isRun then place = terms + 3 * count else decisions = 1 end
  for _ = 1, decisions do
    local isDone = false
    if isUsual then
      --@include ../../../algorithms/token-bucket-take.lua
    end
    if not isDone then
      if not rare then
        --@make rare consume-rare.lua
      end
      if isRun then rare.charge(terms, count, key) else rare.decide(what) end
    end
    if isRun then key = key + count end
  end
end

if rare then rare.finish() end

-- As bytes: a list of numbers takes a client longer to read than all the rest of its work, and cuts them to integers.
local packed = pack('<' .. string.rep('d', math.min(most, length)), unpack(results, 1, math.min(most, length)))
for from = most + 1, length do packed = packed .. pack('<d', results[from]) end
local more = rare and rare.problems
if applied then
  more = more or {}
  more[#more + 1] = applied
end
if more and more[1] then return { packed, unpack(more) } end
return packed
