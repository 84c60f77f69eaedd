-- Executes a batch of operations in one call. Each decision reads all of its buckets, steps all bands, and writes all or
-- nothing. Operations are executed in the given order; each sees the writes of those before it.
--
-- KEYS     each key of the batch once. A key contains the buckets of one rule and one identity, as described in values.lua.
--          First the keys of rules without logs and, if a rule has overrides, the key of the last edit; then the keys of
--          rules with a log; then the keys of bans; then one override hash per lookup
-- ARGV[1]  a JSON array of numbers. Clients encode commands without bytes faster, and most batches have few numbers:
--            now (ticks; or -1 - n: use the server's clock, and keep keys n ms longer), number of keys before the first with a
--              log, of bands, of entries
--            per band: tag, capacity, tokens, window (calendar: a list of the ticks at which periods start); the bands of a
--            rule are consecutive
--            per entry: its type, followed by
--              RUN (equal charges): number of decisions, items of each, first key; the remaining keys are consecutive, and no
--                other operation uses them. If the first key is 0, the keys of each decision follow the items
--                per item: permits, maxWaitTicks, first band, number of bands
--              any other type: number of items. ACQUIRE is a CHARGE that takes holds; QUEUE is an ACQUIRE that joins the
--                queue of the buckets if it is denied
--                per item: permits (BACKDATE: expected timestamp of the bucket), maxWaitTicks, 1 for a shadow rule (LEASE: the
--                  most permits to lease; PARTIAL: the permits are taken in multiples of this), key, first band, number of bands
--                  per band, only for REFUND, RELEASE, SETTLE and BACKDATE: a tick (REFUND, RELEASE: when granted, negative:
--                    now; SETTLE: the end of the lease; BACKDATE: the new timestamp, negative: unchanged)
--                  only for QUEUE, ACQUIRE, RELEASE and RENEW: the two numbers of the hold id, -1 without one
--            only if a rule has a ban: a list of its charges (bans.lua)
-- ARGV[2…] only if a rule has overrides: the last edit that the caller knows; then the lookups (overrides.lua)
-- Result   little-endian doubles; if operations failed, a list of these doubles and one message per failed operation, in order:
--            now; then per decision one of these, each after its number, except for TAKEN:
--            TAKEN     a RUN of token buckets or fixed windows allows without delay; per band, as a negative number: the amount
--                      that the token bucket lacks, in permits times its window; or the permits counted in the fixed window. The
--                      caller computes the rest
--            ALLOWED   all bands allow without delay; per band: remaining, resetAt
--            EMPTY     token buckets deny; per band, the bucket: whole, fraction, at. The caller computes the rest
--            GRANTED   per band, except for REFUND, SETTLE, RESET and BACKDATE: retryAfter (0 allowed, -1 never), delay,
--                      remaining, resetAt; LEASE: then the number of permits and the end of the lease; PARTIAL: then the
--                      permits that were taken
--            DENIED    per band the same, and the permits of PARTIAL; except for LEASE and PARTIAL also the bucket:
--                      For a log these are the tick until which it stays unchanged, its timestamp, and two unused numbers.
--                      If the clock has stepped back, the size is replaced by the timestamp before the step
--                      Then, per item with a ban: its end, 0 without one, and 1 if this decision has started it
--            FAILED    no numbers. The message PERIOD <tick> reports a tick for which a calendar band has no period
--          RELEASE and RENEW have no bands, but one number: released holds, and bands without the hold
--          If overrides apply, the result is a list whose last item is the list of overrides. If there was another edit, the
--          result is STALE and that edit, and nothing was executed.
--
-- Redis runs the whole text for every call. Functions are therefore created only where they are needed.
local RUN = 7
local FAILED, ALLOWED, EMPTY = 2, 3, 4
local TOKEN_BUCKET, FIXED_WINDOW = 1, 4
local call, pack, unpackNumbers = redis.call, struct.pack, struct.unpack
local floor, ceil, format, rep = math.floor, math.ceil, string.format, string.rep
local keys = KEYS
-- x + -x % 1 is math.ceil(x), without the cost of a call.
-- Integers below this are exact.
local exactLimit = 9007199254740992

-- Read

local numbers = cjson.decode(ARGV[1])
local now, cellKeys, bandCount, entryCount = numbers[1], numbers[2], numbers[3], numbers[4]
local position = 4 + 4 * bandCount
-- Expiry of keys. If the caller provides the time, the server's clock may be ahead of it, so keys are kept a day longer.
local expiryOption, expiryBase, expiryMargin = 'PXAT', 0, -1 - now
if now >= 0 then expiryOption, expiryBase, expiryMargin = 'PX', now, 86400000
else
  local time = call('TIME')
  now = time[1] * 1000000 + time[2]
end

local values = cellKeys > 0 and call('MGET', unpack(KEYS, 1, cellKeys))

-- The overrides that were found, by index of their lookup; or true if only overrides of address ranges may apply.
local places, lookups, found
if ARGV[2] then
  -- The caller's cached overrides are valid for one edit. After another edit the caller must encode the batch again.
  local edit = values[cellKeys] or ''
  if edit ~= ARGV[2] then return { 'STALE', edit } end
  places = cjson.decode(ARGV[3] or '[0]')
  lookups = (#places - 1) / 5
  local hashes = #KEYS - lookups
  if ARGV[4 + lookups] then found = {} end
  for i = 1, lookups do
    local value = call('HGET', KEYS[hashes + i], ARGV[3 + i])
    if value then
      found = found or {}
      found[i] = value
    end
  end
end

-- Decide

local results, length, decision = { now }, 1, 0
-- The new buckets of a key, and the formats of several buckets.
local cells, formats, windowFormats, stamps = {}, {}, {}, {}
-- The keys that the fast paths have charged: their number, their names and new values in turn, and the ticks at which they expire.
local charged, assigned, assignments, expiries = 0, 0, {}, {}
-- For keys that several operations use: their position among those.
local positions = {}
-- Per item of a decision that a fast path has charged: its new value, and the tick at which it expires.
local packed, expiresAt = {}, {}

-- Handles everything except token buckets and fixed windows that are charged without waiting.
local slowPath

for _ = 1, entryCount do
  local operation, decisions, items, key, offset, listed = numbers[position + 1], 1, nil, nil, nil, nil
  local areTokenBuckets, areWindows, isBucket, isWindow, permits, maxWaitTicks, tag, capacity, tokens, window
  local stamp, unused
  if operation == RUN then
    decisions, items, key, offset = numbers[position + 2], numbers[position + 3], numbers[position + 4], position + 4
    position = offset + 4 * items
    if key == 0 then listed = position end
    areTokenBuckets, areWindows = not found, not found
    for terms = offset + 4, position, 4 do
      local first, count = numbers[terms - 1], numbers[terms]
      local takes = count > 0 and numbers[terms - 3] > 0
      areTokenBuckets, areWindows = areTokenBuckets and takes, areWindows and takes
      for band = first, first + count - 1 do
        local algorithm = numbers[4 * band + 1] % 256
        areTokenBuckets = areTokenBuckets and algorithm == TOKEN_BUCKET
        -- The windows of a calendar are a list.
        areWindows = areWindows and algorithm == FIXED_WINDOW and type(numbers[4 * band + 4]) == 'number'
      end
    end
    -- A single band of a single rule, the most frequent case.
    if items == 1 and numbers[position] == 1 then
      local band = 4 * numbers[position - 1]
      permits, maxWaitTicks = numbers[position - 3], numbers[position - 2]
      tag, capacity, tokens, window = numbers[band + 1], numbers[band + 2], numbers[band + 3], numbers[band + 4]
      isBucket, isWindow = areTokenBuckets, areWindows
      if isBucket then
        stamp = pack('<I7I6', now, window)
        unused = pack('<I4i5I6c0', tag, capacity, 0, stamp)
      end
    end
  end
  local earlier = decision
  for number = 1, decisions do
    -- A single band leaves its new value and expiry here; several items leave theirs in `packed` and `expiresAt`.
    local isDone, written, newValue, newExpiry = false, 0, nil, nil
    if listed then key = numbers[listed + 1] end
    if isBucket then
      --@include ../../../algorithms/token-bucket-take-one.lua
    elseif isWindow then
      --@include ../../../algorithms/fixed-window-take-one.lua
    elseif areTokenBuckets then
      --@include ../../../algorithms/token-bucket-take.lua
    elseif areWindows then
      --@include ../../../algorithms/fixed-window-take.lua
    end
    if newValue and not listed then
      charged, assigned = charged + 1, assigned + 2
      assignments[assigned - 1], assignments[assigned], expiries[charged] = keys[key], newValue, newExpiry
    else
      if newValue then packed[1], expiresAt[1], written = newValue, newExpiry, 1 end
      for item = 1, written do
        local cell, at = key + item - 1, nil
        if listed then
          -- The next decision about this key reads its new value.
          cell = numbers[listed + item]
          at, values[cell] = positions[cell], packed[item]
        end
        if at then assignments[2 * at], expiries[at] = packed[item], expiresAt[item]
        else
          charged, assigned = charged + 1, assigned + 2
          assignments[assigned - 1], assignments[assigned], expiries[charged] = keys[cell], packed[item], expiresAt[item]
          if listed then positions[cell] = charged end
        end
      end
    end
    if not isDone then
      if not slowPath then
        --@make slowPath slow-path.lua
      end
      decision = earlier + number
      if items then slowPath.chargeRun(offset, items, key, listed) else slowPath.decide(operation) end
    end
    if listed then listed = listed + items elseif items then key = key + items end
  end
  decision = earlier + decisions
  if listed then position = listed end
end

-- Lua limits the number of values that one call can receive.
local unpackLimit = 4000

-- One command sets all values. Its `OK` would otherwise cost a table per key, and SET builds its command again for replicas.
for from = 1, charged > 1 and assigned or 0, unpackLimit do
  call('MSET', unpack(assignments, from, from + unpackLimit <= assigned and from + unpackLimit - 1 or assigned))
end
for i = 1, charged do
  local name, expiry = assignments[2 * i - 1], (expiries[i] - expiryBase) / 1000
  -- As text: Redis would convert a number with all digits of a double, which is slower.
  expiry = format('%d', expiry + -expiry % 1 + expiryMargin)
  if charged == 1 then call('SET', name, assignments[2], expiryOption, expiry)
  elseif expiryOption == 'PX' then call('PEXPIRE', name, expiry)
  else call('PEXPIREAT', name, expiry) end
end
if slowPath then slowPath.finish() end

-- Packed as bytes: Redis would truncate numbers to integers, and clients parse a list of numbers slowly.
local replyLength = length < unpackLimit and length or unpackLimit
local reply = pack('<' .. rep('d', replyLength), unpack(results, 1, replyLength))
for from = unpackLimit + 1, length do reply = reply .. pack('<d', results[from]) end
local extra = slowPath and slowPath.extra()
if extra and extra[1] then return { reply, unpack(extra) } end
return reply
