-- Executes a batch of operations in one call. Each decision reads all of its buckets, steps all bands, and writes all or
-- nothing. Operations are executed in the given order; each sees the writes of those before it.
--
-- KEYS     each bucket of the batch once: first the buckets that are cells (four numbers) and, if a rule has overrides, the key
--          of the last edit; then logs; then one override hash per lookup
-- ARGV[1]  little-endian doubles:
--            now (ticks; negative: use the server's clock), number of keys that are not logs, of bands, of entries
--            per band: kind, capacity, tokens, window
--            per entry: its type, followed by
--              RUN (equal charges whose buckets no other operation uses): number of decisions, bands of each, first key; the
--                remaining keys are consecutive
--                per band: permits, maxWaitTicks, band
--              PLAIN (a charge without shadow rules): number of bands
--                per band: permits, maxWaitTicks, key, band
--              any other type: 1 if no other operation uses its keys and none is a log, else 0; number of items
--                per item: permits (BACKDATE: expected timestamp of the bucket), maxWaitTicks, 1 for a shadow rule (LEASE: the
--                  most permits to lease), number of bands
--                  per band: key, band, a tick (REFUND: when granted, negative: now; SETTLE: the end of the lease; BACKDATE: the
--                    new timestamp, negative: unchanged)
-- ARGV[2…] only if a rule has overrides: the last edit that the caller knows; then the lookups (overrides.lua)
-- Result   doubles as above; if operations failed, a list of these doubles and one message per failed operation, in order:
--            now; then per decision, with bands from the last to the first:
--            ALLOWED   all bands allow without delay; per band: remaining, resetAt
--            GRANTED   per band, except for REFUND, SETTLE, RESET and BACKDATE: retryAfter (0 allowed, -1 never), delay,
--                      remaining, resetAt; LEASE: then the number of permits and the end of the lease
--            DENIED    per band the same; except for LEASE also the bucket: its size (4; 0: unused; -1: unknown) and four numbers.
--                      For a log these are the tick until which it stays unchanged, its timestamp, and two unused numbers.
--                      If the clock has stepped back, the size is replaced by the timestamp before the step
--            FAILED    no numbers
--          If overrides apply, the result is a list whose last item is the list of overrides. If there was another edit, the
--          result is STALE and that edit, and nothing was executed.
--
-- Redis runs the whole text for every call. Functions are therefore created only where they are needed: each closure that
-- captures locals of this file would cost every call about a microsecond.
local PLAIN, CHARGE, PEEK, REFUND, LEASE, RESET, RUN = 0, 1, 2, 3, 4, 6, 7
local DENIED, GRANTED, FAILED, ALLOWED = 0, 1, 2, 3
local TOKEN_BUCKET = 1
local call, pack, unpackNumbers = redis.call, struct.pack, struct.unpack
local floor, ceil, never, format = math.floor, math.ceil, math.huge, string.format
local kindCount, notABucket = 6, 'holds something that is not a bucket'

-- Read

local input = ARGV[1]
-- Lua limits the number of values that one call can return or receive.
local unpackLimit = 4000
local numbers = { unpackNumbers('<' .. string.rep('d', math.min(unpackLimit, #input / 8)), input) }
for from = unpackLimit, #input / 8 - 1 do numbers[from + 1] = unpackNumbers('<d', input, from * 8 + 1) end
local now, cellKeys, bandCount, entryCount = numbers[1], numbers[2], numbers[3], numbers[4]
local position = 4 + 4 * bandCount
-- Expiry of buckets. If the caller provides the time, the server's clock may be ahead of it, so buckets are kept a day longer.
local expiryOption, expiryBase, expiryMargin = 'PXAT', 0, 0
if now >= 0 then expiryOption, expiryBase, expiryMargin = 'PX', now, 86400000
else
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local values = cellKeys > 0 and call('MGET', unpack(KEYS, 1, cellKeys))

local bands

-- The overrides that apply, with the index of their lookup.
local applied
if ARGV[2] then
  -- The caller's cached overrides are valid for one edit. After another edit the caller must encode the batch again.
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

-- Handles everything except a single token bucket that allows.
local slowPath

for _ = 1, entryCount do
  local operation, decisions = numbers[position + 1], numbers[position + 2]
  local count, key = numbers[position + 3], numbers[position + 4]
  local offset, isRun = position + 4, operation == RUN
  local bandNumber = isRun and count == 1 and numbers[offset + 3]
  local isTokenBucket = bandNumber and bandNumber <= bandCount and numbers[4 * bandNumber + 1] == TOKEN_BUCKET
    and numbers[offset + 1] > 0
  local permits, capacity, tokens, window
  if isTokenBucket then
    permits, capacity = numbers[offset + 1], numbers[4 * bandNumber + 2]
    tokens, window = numbers[4 * bandNumber + 3], numbers[4 * bandNumber + 4]
  end
  if isRun then position = offset + 3 * count else decisions = 1 end
  for _ = 1, decisions do
    local isDone = false
    if isTokenBucket then
      --@include ../../../algorithms/token-bucket-take.lua
    end
    if not isDone then
      if not slowPath then
        --@make slowPath slow-path.lua
      end
      if isRun then slowPath.charge(offset, count, key) else slowPath.decide(operation) end
    end
    if isRun then key = key + count end
  end
end

if slowPath then slowPath.finish() end

-- Packed as bytes: Redis would truncate numbers to integers, and clients parse a list of numbers slowly.
local packed = pack('<' .. string.rep('d', math.min(unpackLimit, length)), unpack(results, 1, math.min(unpackLimit, length)))
for from = unpackLimit + 1, length do packed = packed .. pack('<d', results[from]) end
local extra = slowPath and slowPath.problems
if applied then
  extra = extra or {}
  extra[#extra + 1] = applied
end
if extra and extra[1] then return { packed, unpack(extra) } end
return packed
