/** Generated from consume.lua by scripts/assemble-lua.mjs; do not edit. */
export const consumeScript = {
  sha: 'aeb44330bb0905e285428ddce7201af5fb7606b4',
  source: `local PLAIN, CHARGE, PEEK, REFUND, LEASE, RESET, RUN = 0, 1, 2, 3, 4, 6, 7
local DENIED, GRANTED, FAILED, ALLOWED = 0, 1, 2, 3
local TOKEN_BUCKET = 1
local call, pack, unpackNumbers = redis.call, struct.pack, struct.unpack
local floor, ceil, never, format = math.floor, math.ceil, math.huge, string.format
local kindCount, notABucket = 6, 'holds something that is not a bucket'
local input = ARGV[1]
local unpackLimit = 4000
local numbers = { unpackNumbers('<' .. string.rep('d', math.min(unpackLimit, #input / 8)), input) }
for from = unpackLimit, #input / 8 - 1 do numbers[from + 1] = unpackNumbers('<d', input, from * 8 + 1) end
local now, cellKeys, bandCount, entryCount = numbers[1], numbers[2], numbers[3], numbers[4]
local position = 4 + 4 * bandCount
local expiryOption, expiryBase, expiryMargin = 'PXAT', 0, 0
if now >= 0 then expiryOption, expiryBase, expiryMargin = 'PX', now, 86400000
else
local time = call('TIME')
now = time[1] * 1000000 + time[2]
end
local values = cellKeys > 0 and call('MGET', unpack(KEYS, 1, cellKeys))
local bands
local applied
if ARGV[2] then
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
applied = (function()
local LIMIT, ALLOW = 1, 2
local nowMs = now / 1000
values = values or {}
if not bands then
bands = (function()
local algorithms, known, count = {}, {}, bandCount
local function new(kind, capacity, tokens, window)
local algorithm = algorithms[kind]
if not algorithm then
if kind == 1 then algorithm = (function()
local exactLimit = 9007199254740992
local function longMulDiv(a, b, m)
local place = 1
while place * 128 <= b do place = place * 128 end
local quotient, rest = 0, 0
while place >= 1 do
local figure = floor(b / place)
b = b - figure * place
local value = rest * 128 + a * figure
local share = floor(value / m)
quotient = quotient * 128 + share
rest = value - share * m
place = place / 128
end
return quotient, rest
end
local function mulDiv(a, b, m)
local product = a * b
if product >= exactLimit then return longMulDiv(a, b, m) end
local quotient = floor(product / m)
return quotient, product - quotient * m
end
local function answer(wait, permits, maxWaitTicks)
if permits == 0 then return 0, 0, false end
if wait <= maxWaitTicks then return 0, wait, true end
return wait - maxWaitTicks, 0, false
end
local function refill(whole, fraction, band, elapsed)
local window, tokens = band.window, band.tokens
if elapsed >= window then
local turns = floor(elapsed / window)
whole = whole + turns * tokens
elapsed = elapsed - turns * window
end
local gained, rest
local product = elapsed * tokens
if product < exactLimit then
gained = floor(product / window)
rest = product - gained * window
else
gained, rest = longMulDiv(elapsed, tokens, window)
end
whole = whole + gained
fraction = fraction + rest
if fraction >= window then
fraction = fraction - window
whole = whole + 1
end
if whole >= band.capacity then return band.capacity, 0 end
return whole, fraction
end
local function ticksFor(permits, band)
local window, tokens = band.window, band.tokens
local perPermit = floor(window / tokens)
local ticks, rest = mulDiv(window - perPermit * tokens, permits, tokens)
return permits * perPermit + ticks, rest
end
local function ticksUntil(whole, fraction, target, band)
local missing = target - whole
if missing <= 0 then return 0 end
local product = missing * band.window
if product < exactLimit then return ceil((product - fraction) / band.tokens) end
local ticks, rest = ticksFor(missing, band)
return ticks + ceil((rest - fraction) / band.tokens)
end
local function exactTicksUntil(whole, fraction, target, band)
local missing = target - whole
if missing <= 0 then return 0 end
local ticks, rest = ticksFor(missing, band)
local over = rest - fraction
local turns = floor(over / band.tokens)
return ticks + turns + (over - turns * band.tokens) / band.tokens
end
local function carriedFraction(fraction, window, band)
if window == band.window then return fraction end
return (mulDiv(fraction, band.window, window))
end
local function levelAt(band, now, whole, fraction, at, window)
if not whole then return band.capacity, 0 end
if window ~= band.window then fraction = carriedFraction(fraction, window, band) end
return refill(whole, fraction, band, now > at and now - at or 0)
end
return {
stamp = 3,
endsAtReset = true,
step = function(band, permits, now, maxWaitTicks, written, part, at, window)
local capacity = band.capacity
if written and written < capacity and permits <= written and window == band.window and now >= at and permits > 0 then
local left, level = written - permits, part + (now - at) * band.tokens
local missing = (capacity - left) * window
if level < window and missing < exactLimit then
return 0, 0, left, now + ceil((missing - level) / band.tokens), true, left, level, now, window
end
end
local whole, fraction = levelAt(band, now, written, part, at, window)
local wait = 0
if permits > capacity then wait = never elseif permits > whole then wait = ticksUntil(whole, fraction, permits, band) end
local retryAfter, delay, charged = answer(wait, permits, maxWaitTicks)
if charged then whole = whole - permits end
local resetAt = now + ticksUntil(whole, fraction, capacity, band)
local changes = charged or (written and now < at)
return retryAfter, delay, whole > 0 and whole or 0, resetAt, changes, whole, fraction, now, band.window
end,
refund = function(band, permits, now, grantedAt, written, part, at, window)
local whole, fraction = levelAt(band, now, written, part, at, window)
local applies = grantedAt <= now or now + ticksUntil(whole, fraction, 0, band) <= grantedAt
whole = whole + permits
if whole >= band.capacity then whole, fraction = band.capacity, 0 end
return applies, whole, fraction, now, band.window
end,
expiresAt = function(band, whole, fraction, at, window)
if window ~= band.window then fraction = carriedFraction(fraction, window, band) end
return at + ticksUntil(whole, fraction, band.capacity, band)
end,
}
end)() end
if kind == 2 then algorithm = (function()
local function answer(wait, permits, maxWaitTicks)
if permits == 0 then return 0, 0, false end
if wait <= maxWaitTicks then return 0, wait, true end
return wait - maxWaitTicks, 0, false
end
local function levelAt(band, now, whole, since)
if not whole then return band.capacity, now end
if since > now then since = now end
local turns = floor((now - since) / band.window)
whole = whole + turns * band.tokens
if whole >= band.capacity then return band.capacity, now end
return whole, since + turns * band.window
end
local function ticksUntilTurn(whole, since, target, band, now)
if target <= whole then return 0 end
return since + ceil((target - whole) / band.tokens) * band.window - now
end
local function lastOf(now, isFull, lastAt, lastPermits)
if isFull or not lastAt or lastAt <= now then return 0, 0 end
return lastAt, lastPermits
end
local function joined(lastAt, lastPermits, at, permits, before)
if at == lastAt then return lastAt, lastPermits + permits end
if before < lastAt then return lastAt, lastPermits end
return at, at == before and never or permits
end
return {
stamp = 2,
endsAtReset = true,
step = function(band, permits, now, maxWaitTicks, written, writtenSince, lastAt, lastPermits)
local whole, since = levelAt(band, now, written, writtenSince)
local wait = permits > band.capacity and never or ticksUntilTurn(whole, since, permits, band, now)
local retryAfter, delay, charged = answer(wait, permits, maxWaitTicks)
local left = charged and whole - permits or whole
local resetAt = now + ticksUntilTurn(left, since, band.capacity, band, now)
local changes = charged or (written and now < writtenSince)
lastAt, lastPermits = lastOf(now, whole >= band.capacity, lastAt, lastPermits)
if charged and wait > 0 then
local before = now + ticksUntilTurn(whole, since, 0, band, now)
lastAt, lastPermits = joined(lastAt, lastPermits, now + wait, permits, before)
end
return retryAfter, delay, left > 0 and left or 0, resetAt, changes, left, since, lastAt, lastPermits
end,
refund = function(band, permits, now, grantedAt, written, writtenSince, lastAt, lastPermits)
local whole, since = levelAt(band, now, written, writtenSince)
lastAt, lastPermits = lastOf(now, false, lastAt, lastPermits)
local isLast = lastAt <= grantedAt and now + ticksUntilTurn(whole, since, 0, band, now) <= grantedAt
if grantedAt == lastAt then
lastPermits = lastPermits - permits
if lastPermits <= 0 then lastAt, lastPermits = 0, 0 end
end
whole = whole + permits
if whole < band.capacity then return grantedAt <= now or isLast, whole, since, lastAt, lastPermits end
return grantedAt <= now or isLast, band.capacity, since, 0, 0
end,
expiresAt = function(band, whole, since)
return since + ticksUntilTurn(whole, since, band.capacity, band, since)
end,
}
end)() end
if kind == 3 then algorithm = (function()
local exactLimit = 9007199254740992
local function longMulDiv(a, b, m)
local place = 1
while place * 128 <= b do place = place * 128 end
local quotient, rest = 0, 0
while place >= 1 do
local figure = floor(b / place)
b = b - figure * place
local value = rest * 128 + a * figure
local share = floor(value / m)
quotient = quotient * 128 + share
rest = value - share * m
place = place / 128
end
return quotient, rest
end
local function mulDiv(a, b, m)
local product = a * b
if product >= exactLimit then return longMulDiv(a, b, m) end
local quotient = floor(product / m)
return quotient, product - quotient * m
end
local function refill(whole, fraction, band, elapsed)
local window, tokens = band.window, band.tokens
if elapsed >= window then
local turns = floor(elapsed / window)
whole = whole + turns * tokens
elapsed = elapsed - turns * window
end
local gained, rest
local product = elapsed * tokens
if product < exactLimit then
gained = floor(product / window)
rest = product - gained * window
else
gained, rest = longMulDiv(elapsed, tokens, window)
end
whole = whole + gained
fraction = fraction + rest
if fraction >= window then
fraction = fraction - window
whole = whole + 1
end
if whole >= band.capacity then return band.capacity, 0 end
return whole, fraction
end
local function ticksFor(permits, band)
local window, tokens = band.window, band.tokens
local perPermit = floor(window / tokens)
local ticks, rest = mulDiv(window - perPermit * tokens, permits, tokens)
return permits * perPermit + ticks, rest
end
local function ticksUntil(whole, fraction, target, band)
local missing = target - whole
if missing <= 0 then return 0 end
local product = missing * band.window
if product < exactLimit then return ceil((product - fraction) / band.tokens) end
local ticks, rest = ticksFor(missing, band)
return ticks + ceil((rest - fraction) / band.tokens)
end
local function exactTicksUntil(whole, fraction, target, band)
local missing = target - whole
if missing <= 0 then return 0 end
local ticks, rest = ticksFor(missing, band)
local over = rest - fraction
local turns = floor(over / band.tokens)
return ticks + turns + (over - turns * band.tokens) / band.tokens
end
local function carriedFraction(fraction, window, band)
if window == band.window then return fraction end
return (mulDiv(fraction, band.window, window))
end
local function roomOf(band, water, fraction, window)
if water >= band.capacity then return 0, 0 end
if fraction == 0 then return band.capacity - water, 0 end
return band.capacity - water - 1, carriedFraction(window - fraction, window, band)
end
local function roomAt(band, now, water, part, at, window)
if not water then return band.capacity, 0 end
local whole, fraction = roomOf(band, water, part, window)
return refill(whole, fraction, band, now > at and now - at or 0)
end
local function waitFor(whole, fraction, band, permits, maxWaitTicks)
if permits > band.capacity then return never end
local untilRoom = ticksUntil(whole, fraction, permits, band)
if maxWaitTicks == 0 then return untilRoom end
local untilTurn = ticksUntil(whole, fraction, band.capacity, band) - maxWaitTicks
return untilTurn > untilRoom and untilTurn or untilRoom
end
local function waterOf(whole, fraction, band, now)
if fraction == 0 then return band.capacity - whole, 0, now, band.window end
return band.capacity - whole - 1, band.window - fraction, now, band.window
end
return {
stamp = 3,
endsAtReset = true,
step = function(band, permits, now, maxWaitTicks, water, part, at, window)
local whole, fraction = roomAt(band, now, water, part, at, window)
local wait = waitFor(whole, fraction, band, permits, maxWaitTicks)
local charged = permits > 0 and wait == 0
local delay = charged and exactTicksUntil(whole, fraction, band.capacity, band) or 0
local left = charged and whole - permits or whole
local resetAt = now + ticksUntil(left, fraction, band.capacity, band)
local changes = charged or (water and now < at)
return permits == 0 and 0 or wait, delay, left, resetAt, changes, waterOf(left, fraction, band, now)
end,
refund = function(band, permits, now, grantedAt, water, part, at, window)
local whole, fraction = roomAt(band, now, water, part, at, window)
local slotAt = ceil(grantedAt)
local slotEndsAt = slotAt + ticksUntil(0, 0, permits, band)
local endsAt = now + ticksUntil(whole, fraction, band.capacity, band)
whole = whole + permits
if whole >= band.capacity then whole, fraction = band.capacity, 0 end
local lastRelease = now + ticksUntil(whole, fraction, band.capacity, band)
local applies = slotAt == now or lastRelease <= slotAt + 1
if slotAt < now then applies = endsAt <= slotEndsAt + 1 end
return applies, waterOf(whole, fraction, band, now)
end,
expiresAt = function(band, water, part, at, window)
local whole, fraction = roomOf(band, water, part, window)
return at + ticksUntil(whole, fraction, band.capacity, band)
end,
}
end)() end
if kind == 4 then algorithm = (function()
local function answer(wait, permits, maxWaitTicks)
if permits == 0 then return 0, 0, false end
if wait <= maxWaitTicks then return 0, wait, true end
return wait - maxWaitTicks, 0, false
end
local function windowOf(tick, band)
return floor(tick / band.window) * band.window
end
local function windowAt(written, writtenAt, now, band)
local current = windowOf(now, band)
written = windowOf(written, band)
if now >= writtenAt then return current > written and current or written end
local ahead = written - windowOf(writtenAt, band)
return ahead > 0 and current + ahead or current
end
local unknown = -1
local function countsAt(band, now, window, count, at, before)
if not window then return windowOf(now, band), 0, unknown end
local open = windowAt(window, at, now, band)
if now < at or windowOf(window, band) >= open then return open, count, before end
return open, 0, unknown
end
return {
stamp = 3,
isWindow = true,
step = function(band, permits, now, maxWaitTicks, written, counted, at, previous)
local open, count, before = countsAt(band, now, written, counted, at, previous)
local fits = count + permits <= band.capacity
local granted = (fits or permits == 0) and open or open + band.window
local wait = granted > now and granted - now or 0
if permits > band.capacity then wait = never end
local retryAfter, delay, charged = answer(wait, permits, maxWaitTicks)
local window, after = open, count
if charged then
window, after = granted, (fits and count or 0) + permits
if window > open then before = count end
end
local remaining = (window > now or after > band.capacity) and 0 or band.capacity - after
local changes = charged or (written and now < at)
return retryAfter, delay, remaining, window + band.window, changes, window, after, now, before
end,
refund = function(band, permits, now, grantedAt, written, counted, at, previous)
local open, count, before = countsAt(band, now, written, counted, at, previous)
count = count > permits and count - permits or 0
local applies = windowOf(grantedAt, band) == open
if count == 0 and before >= 0 and open > windowOf(now, band) then
return applies, open - band.window, before, now, unknown
end
return applies, open, count, now, before
end,
expiresAt = function(band, window, count)
return windowOf(window, band) + (count > 0 and band.window or 0)
end,
}
end)() end
if kind == 5 then algorithm = (function()
local function answer(wait, permits, maxWaitTicks)
if permits == 0 then return 0, 0, false end
if wait <= maxWaitTicks then return 0, wait, true end
return wait - maxWaitTicks, 0, false
end
local headerBytes, entryBytes, pageEntries = 41, 16, 64
local function withEntries(log, name)
local pages = {}
log.written = {}
log.removeOldest = function(count)
log.head = log.head + count
log.size = log.size - count
end
log.write = function(index, instant, total)
log.written[log.head + index] = { instant, total }
end
log.read = function(index)
local slot = log.head + index
local entry = log.written[slot]
if entry then return entry[1], entry[2] end
local page = floor((slot - 1) / pageEntries)
if not pages[page] then
local from = headerBytes + page * pageEntries * entryBytes
pages[page] = call('GETRANGE', name, from, from + pageEntries * entryBytes - 1)
end
return unpackNumbers('<dd', pages[page], (slot - 1 - page * pageEntries) * entryBytes + 1)
end
return log
end
local logKind = 5
local function newLog()
return withEntries({ seenAt = 0, shift = 0, base = 0, head = 0, size = 0, isNew = true })
end
local function openLog(name)
local header = redis.pcall('GETRANGE', name, 0, headerBytes - 1)
if type(header) == 'table' then return notABucket end
if header == '' then return 0 end
local kind = string.byte(header)
if kind ~= logKind then return kind <= kindCount and kind or notABucket end
if #header < headerBytes then return notABucket end
local _, seenAt, shift, base, head, size = unpackNumbers('<Bddddd', header)
return kind, withEntries({ seenAt = seenAt, shift = shift, base = base, head = head, size = size }, name)
end
local function packHeader(log)
return pack('<Bddddd', logKind, log.seenAt, log.shift, log.base, log.head, log.size)
end
local function changedSlots(log)
local slots = {}
for slot in pairs(log.written) do
if slot > log.head and slot <= log.head + log.size then slots[#slots + 1] = slot end
end
table.sort(slots)
return slots
end
local function writeEntries(log, name)
local slots = changedSlots(log)
local first = 1
while first <= #slots do
local last, entries = first, {}
repeat
local entry = log.written[slots[last]]
entries[#entries + 1] = pack('<dd', entry[1], entry[2])
last = last + 1
until slots[last] ~= slots[last - 1] + 1
call('SETRANGE', name, headerBytes + (slots[first] - 1) * entryBytes, table.concat(entries))
first = last
end
end
local function writeLog(log, name, expiresAt)
if expiresAt <= now then return call('DEL', name) end
local isSparse = log.head > pageEntries and log.head > log.size
if log.isNew then call('SET', name, packHeader(log)) end
writeEntries(log, name)
if isSparse then
local from = headerBytes + log.head * entryBytes
local kept = call('GETRANGE', name, from, from + log.size * entryBytes - 1)
log.head = 0
call('SET', name, packHeader(log) .. kept)
elseif not log.isNew then call('SETRANGE', name, 0, packHeader(log)) end
local expiry = ceil((expiresAt - expiryBase) / 1000) + expiryMargin
if expiryOption == 'PX' then call('PEXPIRE', name, expiry) else call('PEXPIREAT', name, expiry) end
end
local function timeAt(log, index)
return (log.read(index)) + log.shift
end
local function totalOf(log, count)
if count == 0 then return log.base end
local _, total = log.read(count)
return total
end
local function countUntil(log, tick)
local low, high = 0, log.size
local width = 1
while low + width <= high and timeAt(log, low + width) <= tick do
low = low + width
width = width * 2
end
if low + width <= high then high = low + width - 1 end
while low < high do
local middle = ceil((low + high) / 2)
if timeAt(log, middle) <= tick then low = middle else high = middle - 1 end
end
return low
end
local function grantedAfter(log, tick)
return totalOf(log, log.size) - totalOf(log, countUntil(log, tick))
end
local function nthAfter(log, tick, n)
local first = countUntil(log, tick)
local target = totalOf(log, first) + n
local low, high = first + 1, log.size
while low < high do
local middle = floor((low + high) / 2)
if totalOf(log, middle) >= target then high = middle else low = middle + 1 end
end
return timeAt(log, low)
end
local function shiftOf(log, now)
return now < log.seenAt and now - log.seenAt or 0
end
local function earliest(log, band, permits, now, shift)
if log.size == 0 then return now end
local from = timeAt(log, log.size) + shift
if now > from then from = now end
local horizon = from - shift - band.window
local excess = grantedAfter(log, horizon) + permits - band.capacity
if excess <= 0 then return from end
return nthAfter(log, horizon, excess) + shift + band.window
end
local function takeBack(log, at, permits)
local index = countUntil(log, at)
while index > 0 and permits > 0 do
local _, total = log.read(index)
local here = total - totalOf(log, index - 1)
local taken = permits < here and permits or here
for later = index, log.size do
local instant, sum = log.read(later)
log.write(later, instant, sum - taken)
end
permits = permits - taken
index = index - 1
end
while log.size > 0 and totalOf(log, log.size) == totalOf(log, log.size - 1) do log.size = log.size - 1 end
end
local function append(log, at, permits)
local total = totalOf(log, log.size) + permits
if log.size == 0 or timeAt(log, log.size) ~= at then log.size = log.size + 1 end
log.write(log.size, at - log.shift, total)
end
return {
open = openLog,
write = writeLog,
step = function(band, permits, now, maxWaitTicks, log)
local shift = log and shiftOf(log, now) or 0
local newest = log and log.size > 0 and timeAt(log, log.size) + shift or nil
local counted = log and grantedAfter(log, now - shift - band.window) or 0
local possible = permits > 0 and permits <= band.capacity
local at = possible and log and earliest(log, band, permits, now, shift) or now
local wait = permits > band.capacity and never or at - now
local retryAfter, delay, charged = answer(wait, permits, maxWaitTicks)
if charged then
newest = at
counted = counted + permits
end
local remaining = newest and newest > now and 0 or band.capacity - counted
local resetAt = newest and newest + band.window or now
return retryAfter, delay, remaining > 0 and remaining or 0, resetAt > now and resetAt or now, charged or shift ~= 0,
now, shift, now - band.window, at, charged and permits or 0
end,
refund = function(band, permits, now, grantedAt, log)
return true, now, shiftOf(log, now), now - band.window, grantedAt, -permits
end,
apply = function(log, seenAt, shift, forgetUntil, at, permits)
log = log or newLog()
log.shift = log.shift + shift
log.seenAt = seenAt
local over = countUntil(log, forgetUntil)
log.base = totalOf(log, over)
log.removeOldest(over)
if permits > 0 then append(log, at, permits)
elseif permits < 0 then takeBack(log, at, -permits) end
return log
end,
unchangedUntil = function(band, now, log)
local shift = shiftOf(log, now)
local over = countUntil(log, now - shift - band.window)
if over == log.size then return 2 ^ 53 end
local leaves, newest = timeAt(log, over + 1) + shift + band.window, timeAt(log, log.size) + shift
return newest > now and newest < leaves and newest or leaves
end,
expiresAt = function(band, log)
return log.size == 0 and 0 or timeAt(log, log.size) + band.window
end,
}
end)() end
if kind == 6 then algorithm = (function()
local exactLimit = 9007199254740992
local function longMulDiv(a, b, m)
local place = 1
while place * 128 <= b do place = place * 128 end
local quotient, rest = 0, 0
while place >= 1 do
local figure = floor(b / place)
b = b - figure * place
local value = rest * 128 + a * figure
local share = floor(value / m)
quotient = quotient * 128 + share
rest = value - share * m
place = place / 128
end
return quotient, rest
end
local function mulDiv(a, b, m)
local product = a * b
if product >= exactLimit then return longMulDiv(a, b, m) end
local quotient = floor(product / m)
return quotient, product - quotient * m
end
local function answer(wait, permits, maxWaitTicks)
if permits == 0 then return 0, 0, false end
if wait <= maxWaitTicks then return 0, wait, true end
return wait - maxWaitTicks, 0, false
end
local function windowOf(tick, band)
return floor(tick / band.window) * band.window
end
local function windowAt(written, writtenAt, now, band)
local current = windowOf(now, band)
written = windowOf(written, band)
if now >= writtenAt then return current > written and current or written end
local ahead = written - windowOf(writtenAt, band)
return ahead > 0 and current + ahead or current
end
local function mulDivUp(a, b, m)
local quotient, rest = mulDiv(a, b, m)
return rest > 0 and quotient + 1 or quotient
end
local function weight(window, previous, band, now)
if previous == 0 then return 0 end
return mulDivUp(band.window - (now - window), previous, band.window)
end
local function countsAt(band, now, written, previous, current, writtenAt)
if not written then return windowOf(now, band), 0, 0 end
local window = windowAt(written, writtenAt, now, band)
written = windowOf(written, band)
if now < writtenAt then
local kept = weight(written, previous, band, written > writtenAt and written or writtenAt)
return window, 0, current + kept
end
if written == window then return window, previous, current end
return window, written == window - band.window and current or 0, 0
end
local function fadeTicks(count, free, window)
if count <= free then return 0 end
return window - (mulDiv(free, window, count))
end
local function earliest(window, previous, current, band, permits, now)
local free = band.capacity - current - permits
if free >= 0 then
local at = window + fadeTicks(previous, free, band.window)
if now > at then at = now end
if at < window + band.window then return at end
end
return window + band.window + fadeTicks(current, band.capacity - permits, band.window)
end
local function charge(window, previous, current, band, permits, at)
local following = window + band.window
if at < following then return window, previous, current + permits end
if at < following + band.window then return following, current, permits end
return following + band.window, 0, permits
end
return {
stamp = 4,
step = function(band, permits, now, maxWaitTicks, written, before, counted, writtenAt)
local window, previous, current = countsAt(band, now, written, before, counted, writtenAt)
local possible = permits > 0 and permits <= band.capacity
local at = possible and earliest(window, previous, current, band, permits, now) or now
local wait = permits > band.capacity and never or at - now
local retryAfter, delay, charged = answer(wait, permits, maxWaitTicks)
if charged then window, previous, current = charge(window, previous, current, band, permits, at) end
local remaining = window > now and 0 or band.capacity - current - weight(window, previous, band, now)
local changes = charged or (written and now < writtenAt)
return retryAfter, delay, remaining > 0 and remaining or 0, window + band.window, changes,
window, previous, current, now
end,
refund = function(band, permits, now, grantedAt, written, before, counted, writtenAt)
local window, previous, current = countsAt(band, now, written, before, counted, writtenAt)
local granted = windowOf(grantedAt, band)
if granted == window - band.window then
return true, window, previous > permits and previous - permits or 0, current, now
end
return granted == window, window, previous, current > permits and current - permits or 0, now
end,
expiresAt = function(band, window, previous, current)
local windows = current > 0 and 2 or previous > 0 and 1 or 0
return windowOf(window, band) + windows * band.window
end,
}
end)() end
algorithms[kind] = algorithm
end
return {
kind = kind,
capacity = capacity,
tokens = tokens,
window = window,
algorithm = algorithm,
step = algorithm.step,
endsAtReset = algorithm.endsAtReset,
}
end
return {
new = new,
add = function(band)
count = count + 1
known[count] = band
return count
end,
at = function(number)
local band, offset = known[number], 4 * number
if not band then
band = new(numbers[offset + 1], numbers[offset + 2], numbers[offset + 3], numbers[offset + 4])
known[number] = band
end
return band
end,
}
end)()
end
local keyIndexes, declaredKeys, isShared = {}, #KEYS, false
if unpackNumbers('<d', ARGV[3]) == 1 then
for i, name in ipairs(KEYS) do keyIndexes[name] = i end
end
local function keyIndexOf(name, isLog, initial)
local index = keyIndexes[name]
if index then isShared = isShared or index <= declaredKeys
else
index = #KEYS + 1
KEYS[index], keyIndexes[name] = name, index
values[index] = not isLog and call('GET', name)
end
if initial and not values[index] then values[index] = initial end
return index
end
local function applyBalance(band, balance, at)
local algorithm, spent = band.algorithm, band.capacity - balance
if spent <= 0 then return end
local _, _, _, _, _, first, second, third, fourth, fifth = algorithm.step(band, spent, at, 0)
local isLog = algorithm.open ~= nil
local function log() return algorithm.apply(nil, first, second, third, fourth, fifth) end
local endsAt = algorithm.expiresAt(band, isLog and log() or first, second, third, fourth)
if endsAt <= now then return end
local startedAlgorithm = {}
for name, part in pairs(algorithm) do startedAlgorithm[name] = part end
startedAlgorithm.expiresAt = function(...) return math.max(endsAt, algorithm.expiresAt(...)) end
if isLog then
startedAlgorithm.open = function(name)
local kind, found = algorithm.open(name)
if kind == 0 then return band.kind, log() end
return kind, found
end
else
band.initial = pack('<Bdddd', band.kind, first, second, third, fourth)
end
band.algorithm, band.endsAtReset = startedAlgorithm, nil
end
local function readBand(value, at)
local bits = string.byte(value, at)
local capacity, tokens, window
capacity, at = unpackNumbers(bits % 128 >= 64 and '<I4' or '<I2', value, at + 1)
tokens = capacity
if bits % 16 >= 8 then tokens, at = unpackNumbers('<I4', value, at) end
if bits % 64 >= 32 then window, at = unpackNumbers('<d', value, at)
else
window, at = unpackNumbers('<I3', value, at)
window = window * 1000000
end
if bits % 32 >= 16 then at = string.find(value, string.char(0), at, true) + 1 end
return bands.new(bits % 8, capacity, tokens, window), at, bits >= 128
end
local limits = {}
local function limitOf(value, at, first, count)
local flags = string.byte(value)
local hasBands, start = flags % 8 >= 4, at
if limits[value] then return limits[value] end
local balance, balanceAt
if flags % 64 >= 32 then balance, balanceAt, at = unpackNumbers('<I4I6', value, at) end
local limit = { hasLog = false }
local function add(band)
if balance then applyBalance(band, balance, math.min(now, balanceAt * 1000)) end
local isLog = band.algorithm.open ~= nil
limit[#limit + 1] = { band = bands.add(band), initial = band.initial, isLog = isLog }
limit.hasLog = limit.hasLog or isLog
end
local more = hasBands
while more do
local band
band, at, more = readBand(value, at)
add(band)
end
for number = first, hasBands and 0 or first + count - 1 do
local band = bands.at(number)
add(bands.new(band.kind, band.capacity, band.tokens, band.window))
end
limit.suffix = '.' .. string.sub(redis.sha1hex(string.sub(value, start, at - 1)), 1, 10) .. ':'
if hasBands then limits[value] = limit end
return limit
end
local function denyingBand(expiresAt)
local retryAfter = expiresAt and ceil(expiresAt * 1000) - now or never
local resetAt = expiresAt and ceil(expiresAt * 1000) or now
local function step() return retryAfter, 0, 0, resetAt, false end
return { kind = -1, step = step, algorithm = { step = step } }
end
local replacements, applied = {}, {}
for i = 1, lookups do
local value, action, at, expiresAt = found and found[i], nil, nil, nil
for _ = 1, 2 do
if value and value ~= '' and not action then
local flags = string.byte(value)
action, at, expiresAt = flags % 4, 2, nil
if flags % 16 >= 8 then expiresAt, at = unpackNumbers('<I6', value, 2) end
if expiresAt and expiresAt <= nowMs then action = nil end
end
if not action then value = ARGV[3 + lookups + i] end
end
if action then
applied[#applied + 1] = i - 1
applied[#applied + 1] = value
local decision, first, count, number, bucket = unpackNumbers('<ddddd', ARGV[3], i * 40 - 31)
local base, replacement, isRun = string.match(KEYS[bucket], '^(.*):'), {}, true
if action == LIMIT then
local limit = limitOf(value, at, number, count)
for j = 1, #limit do
local added, nextIndex = limit[j], #KEYS + 1
replacement[2 * j - 1] = keyIndexOf(base .. limit.suffix .. (j - 1), added.isLog, added.initial)
replacement[2 * j] = added.band
isRun = isRun and replacement[2 * j - 1] == nextIndex
end
isRun = isRun and not limit.hasLog
elseif action ~= ALLOW then
replacement[1], replacement[2] = keyIndexOf(base .. ' ', false, nil), bands.add(denyingBand(expiresAt))
end
replacement.count, replacement.isRun = count, isRun
replacements[decision] = replacements[decision] or {}
replacements[decision][first] = replacement
end
end
if not applied[1] then return end
local output, entries, readAt, writeAt = {}, 0, position, position
for i = 1, position do output[i] = numbers[i] end
local function copy(count)
for _ = 1, count do
readAt, writeAt = readAt + 1, writeAt + 1
output[writeAt] = numbers[readAt]
end
end
local function append(first, second, third, fourth)
output[writeAt + 1], output[writeAt + 2], output[writeAt + 3], output[writeAt + 4] = first, second, third, fourth
writeAt = writeAt + 4
end
local function appendRun(decisions, count, key, offset)
if decisions == 0 then return end
entries = entries + 1
append(RUN, decisions, count, key)
for i = offset + 1, offset + 3 * count do
writeAt = writeAt + 1
output[writeAt] = numbers[i]
end
end
local function appendReplacement(replacement, permits, maxWaitTicks)
append(RUN, 1, #replacement / 2, replacement[1] or 1)
for j = 2, #replacement, 2 do
output[writeAt + 1], output[writeAt + 2], output[writeAt + 3] = permits, maxWaitTicks, replacement[j]
writeAt = writeAt + 3
end
end
local function appendPlain(count, replaced, termsOf)
local start, i = writeAt, 1
output[writeAt + 1], output[writeAt + 2], writeAt = PLAIN, count, writeAt + 2
while i <= count do
local permits, maxWaitTicks, key, band = termsOf(i)
local replacement = replaced and replaced[i]
if replacement then
for j = 1, #replacement, 2 do append(permits, maxWaitTicks, replacement[j], replacement[j + 1]) end
output[start + 2] = output[start + 2] - replacement.count + #replacement / 2
else append(permits, maxWaitTicks, key, band) end
i = i + (replacement and replacement.count or 1)
end
end
local decision = 0
for _ = 1, entryCount do
local operation = numbers[readAt + 1]
if operation == RUN then
local decisions, count, key, offset = numbers[readAt + 2], numbers[readAt + 3], numbers[readAt + 4], readAt + 4
local unchanged = 0
for _ = 1, decisions do
decision = decision + 1
local replaced = replacements[decision]
if replaced or isShared then
appendRun(unchanged, count, key - unchanged * count, offset)
unchanged, entries = 0, entries + 1
local replacement = replaced and replaced[1]
if replacement and replacement.count == count and replacement.isRun and not isShared then
appendReplacement(replacement, numbers[offset + 1], numbers[offset + 2])
else
appendPlain(count, replaced, function(i)
local bandOffset = offset + 3 * i - 3
return numbers[bandOffset + 1], numbers[bandOffset + 2], key + i - 1, numbers[bandOffset + 3]
end)
end
else unchanged = unchanged + 1 end
key = key + count
end
appendRun(unchanged, count, key - unchanged * count, offset)
readAt = offset + 3 * count
else
decision, entries = decision + 1, entries + 1
local replaced = replacements[decision]
if operation == PLAIN then
local count, offset = numbers[readAt + 2], readAt + 2
appendPlain(count, replaced, function(i) return unpack(numbers, offset + 4 * i - 3, offset + 4 * i) end)
readAt = offset + 4 * count
else
local items, first = numbers[readAt + 3], 1
copy(3)
if replaced or isShared then output[writeAt - 1] = 0 end
for _ = 1, items do
copy(4)
local bandsHere, countAt, replacement = numbers[readAt], writeAt, replaced and replaced[first]
if not replacement or operation == RESET then copy(3 * bandsHere) else readAt = readAt + 3 * bandsHere end
if replacement then
output[countAt] = #replacement / 2 + (operation == RESET and bandsHere or 0)
for j = 1, #replacement, 2 do
output[writeAt + 1], output[writeAt + 2], output[writeAt + 3] = replacement[j], replacement[j + 1], -1
writeAt = writeAt + 3
end
end
first = first + bandsHere
end
end
end
end
numbers, entryCount = output, entries
return applied
end)()
end
end
local results, length = { now }, 1
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
local value = values[key]
local kind, whole, fraction, at, under = TOKEN_BUCKET, capacity, 0, now, window
if value and #value == 33 then kind, whole, fraction, at, under = unpackNumbers('<Bdddd', value)
elseif value then kind = 0 end
local left, level = whole - permits, fraction + (now - at) * tokens
local missing = (capacity - left) * window
isDone = kind == TOKEN_BUCKET and under == window and left >= 0 and (whole < capacity or not value) and now >= at
and level < window and missing < 9007199254740992
if isDone then
local resetAt = now + ceil((missing - level) / tokens)
call('SET', KEYS[key], pack('<Bdddd', TOKEN_BUCKET, left, level, now, window), expiryOption,
format('%d', ceil((resetAt - expiryBase) / 1000) + expiryMargin))
results[length + 1], results[length + 2], results[length + 3] = ALLOWED, left, resetAt
length = length + 3
end
end
if not isDone then
if not slowPath then
slowPath = (function()
if not bands then
bands = (function()
local algorithms, known, count = {}, {}, bandCount
local function new(kind, capacity, tokens, window)
local algorithm = algorithms[kind]
if not algorithm then
if kind == 1 then algorithm = (function()
local exactLimit = 9007199254740992
local function longMulDiv(a, b, m)
local place = 1
while place * 128 <= b do place = place * 128 end
local quotient, rest = 0, 0
while place >= 1 do
local figure = floor(b / place)
b = b - figure * place
local value = rest * 128 + a * figure
local share = floor(value / m)
quotient = quotient * 128 + share
rest = value - share * m
place = place / 128
end
return quotient, rest
end
local function mulDiv(a, b, m)
local product = a * b
if product >= exactLimit then return longMulDiv(a, b, m) end
local quotient = floor(product / m)
return quotient, product - quotient * m
end
local function answer(wait, permits, maxWaitTicks)
if permits == 0 then return 0, 0, false end
if wait <= maxWaitTicks then return 0, wait, true end
return wait - maxWaitTicks, 0, false
end
local function refill(whole, fraction, band, elapsed)
local window, tokens = band.window, band.tokens
if elapsed >= window then
local turns = floor(elapsed / window)
whole = whole + turns * tokens
elapsed = elapsed - turns * window
end
local gained, rest
local product = elapsed * tokens
if product < exactLimit then
gained = floor(product / window)
rest = product - gained * window
else
gained, rest = longMulDiv(elapsed, tokens, window)
end
whole = whole + gained
fraction = fraction + rest
if fraction >= window then
fraction = fraction - window
whole = whole + 1
end
if whole >= band.capacity then return band.capacity, 0 end
return whole, fraction
end
local function ticksFor(permits, band)
local window, tokens = band.window, band.tokens
local perPermit = floor(window / tokens)
local ticks, rest = mulDiv(window - perPermit * tokens, permits, tokens)
return permits * perPermit + ticks, rest
end
local function ticksUntil(whole, fraction, target, band)
local missing = target - whole
if missing <= 0 then return 0 end
local product = missing * band.window
if product < exactLimit then return ceil((product - fraction) / band.tokens) end
local ticks, rest = ticksFor(missing, band)
return ticks + ceil((rest - fraction) / band.tokens)
end
local function exactTicksUntil(whole, fraction, target, band)
local missing = target - whole
if missing <= 0 then return 0 end
local ticks, rest = ticksFor(missing, band)
local over = rest - fraction
local turns = floor(over / band.tokens)
return ticks + turns + (over - turns * band.tokens) / band.tokens
end
local function carriedFraction(fraction, window, band)
if window == band.window then return fraction end
return (mulDiv(fraction, band.window, window))
end
local function levelAt(band, now, whole, fraction, at, window)
if not whole then return band.capacity, 0 end
if window ~= band.window then fraction = carriedFraction(fraction, window, band) end
return refill(whole, fraction, band, now > at and now - at or 0)
end
return {
stamp = 3,
endsAtReset = true,
step = function(band, permits, now, maxWaitTicks, written, part, at, window)
local capacity = band.capacity
if written and written < capacity and permits <= written and window == band.window and now >= at and permits > 0 then
local left, level = written - permits, part + (now - at) * band.tokens
local missing = (capacity - left) * window
if level < window and missing < exactLimit then
return 0, 0, left, now + ceil((missing - level) / band.tokens), true, left, level, now, window
end
end
local whole, fraction = levelAt(band, now, written, part, at, window)
local wait = 0
if permits > capacity then wait = never elseif permits > whole then wait = ticksUntil(whole, fraction, permits, band) end
local retryAfter, delay, charged = answer(wait, permits, maxWaitTicks)
if charged then whole = whole - permits end
local resetAt = now + ticksUntil(whole, fraction, capacity, band)
local changes = charged or (written and now < at)
return retryAfter, delay, whole > 0 and whole or 0, resetAt, changes, whole, fraction, now, band.window
end,
refund = function(band, permits, now, grantedAt, written, part, at, window)
local whole, fraction = levelAt(band, now, written, part, at, window)
local applies = grantedAt <= now or now + ticksUntil(whole, fraction, 0, band) <= grantedAt
whole = whole + permits
if whole >= band.capacity then whole, fraction = band.capacity, 0 end
return applies, whole, fraction, now, band.window
end,
expiresAt = function(band, whole, fraction, at, window)
if window ~= band.window then fraction = carriedFraction(fraction, window, band) end
return at + ticksUntil(whole, fraction, band.capacity, band)
end,
}
end)() end
if kind == 2 then algorithm = (function()
local function answer(wait, permits, maxWaitTicks)
if permits == 0 then return 0, 0, false end
if wait <= maxWaitTicks then return 0, wait, true end
return wait - maxWaitTicks, 0, false
end
local function levelAt(band, now, whole, since)
if not whole then return band.capacity, now end
if since > now then since = now end
local turns = floor((now - since) / band.window)
whole = whole + turns * band.tokens
if whole >= band.capacity then return band.capacity, now end
return whole, since + turns * band.window
end
local function ticksUntilTurn(whole, since, target, band, now)
if target <= whole then return 0 end
return since + ceil((target - whole) / band.tokens) * band.window - now
end
local function lastOf(now, isFull, lastAt, lastPermits)
if isFull or not lastAt or lastAt <= now then return 0, 0 end
return lastAt, lastPermits
end
local function joined(lastAt, lastPermits, at, permits, before)
if at == lastAt then return lastAt, lastPermits + permits end
if before < lastAt then return lastAt, lastPermits end
return at, at == before and never or permits
end
return {
stamp = 2,
endsAtReset = true,
step = function(band, permits, now, maxWaitTicks, written, writtenSince, lastAt, lastPermits)
local whole, since = levelAt(band, now, written, writtenSince)
local wait = permits > band.capacity and never or ticksUntilTurn(whole, since, permits, band, now)
local retryAfter, delay, charged = answer(wait, permits, maxWaitTicks)
local left = charged and whole - permits or whole
local resetAt = now + ticksUntilTurn(left, since, band.capacity, band, now)
local changes = charged or (written and now < writtenSince)
lastAt, lastPermits = lastOf(now, whole >= band.capacity, lastAt, lastPermits)
if charged and wait > 0 then
local before = now + ticksUntilTurn(whole, since, 0, band, now)
lastAt, lastPermits = joined(lastAt, lastPermits, now + wait, permits, before)
end
return retryAfter, delay, left > 0 and left or 0, resetAt, changes, left, since, lastAt, lastPermits
end,
refund = function(band, permits, now, grantedAt, written, writtenSince, lastAt, lastPermits)
local whole, since = levelAt(band, now, written, writtenSince)
lastAt, lastPermits = lastOf(now, false, lastAt, lastPermits)
local isLast = lastAt <= grantedAt and now + ticksUntilTurn(whole, since, 0, band, now) <= grantedAt
if grantedAt == lastAt then
lastPermits = lastPermits - permits
if lastPermits <= 0 then lastAt, lastPermits = 0, 0 end
end
whole = whole + permits
if whole < band.capacity then return grantedAt <= now or isLast, whole, since, lastAt, lastPermits end
return grantedAt <= now or isLast, band.capacity, since, 0, 0
end,
expiresAt = function(band, whole, since)
return since + ticksUntilTurn(whole, since, band.capacity, band, since)
end,
}
end)() end
if kind == 3 then algorithm = (function()
local exactLimit = 9007199254740992
local function longMulDiv(a, b, m)
local place = 1
while place * 128 <= b do place = place * 128 end
local quotient, rest = 0, 0
while place >= 1 do
local figure = floor(b / place)
b = b - figure * place
local value = rest * 128 + a * figure
local share = floor(value / m)
quotient = quotient * 128 + share
rest = value - share * m
place = place / 128
end
return quotient, rest
end
local function mulDiv(a, b, m)
local product = a * b
if product >= exactLimit then return longMulDiv(a, b, m) end
local quotient = floor(product / m)
return quotient, product - quotient * m
end
local function refill(whole, fraction, band, elapsed)
local window, tokens = band.window, band.tokens
if elapsed >= window then
local turns = floor(elapsed / window)
whole = whole + turns * tokens
elapsed = elapsed - turns * window
end
local gained, rest
local product = elapsed * tokens
if product < exactLimit then
gained = floor(product / window)
rest = product - gained * window
else
gained, rest = longMulDiv(elapsed, tokens, window)
end
whole = whole + gained
fraction = fraction + rest
if fraction >= window then
fraction = fraction - window
whole = whole + 1
end
if whole >= band.capacity then return band.capacity, 0 end
return whole, fraction
end
local function ticksFor(permits, band)
local window, tokens = band.window, band.tokens
local perPermit = floor(window / tokens)
local ticks, rest = mulDiv(window - perPermit * tokens, permits, tokens)
return permits * perPermit + ticks, rest
end
local function ticksUntil(whole, fraction, target, band)
local missing = target - whole
if missing <= 0 then return 0 end
local product = missing * band.window
if product < exactLimit then return ceil((product - fraction) / band.tokens) end
local ticks, rest = ticksFor(missing, band)
return ticks + ceil((rest - fraction) / band.tokens)
end
local function exactTicksUntil(whole, fraction, target, band)
local missing = target - whole
if missing <= 0 then return 0 end
local ticks, rest = ticksFor(missing, band)
local over = rest - fraction
local turns = floor(over / band.tokens)
return ticks + turns + (over - turns * band.tokens) / band.tokens
end
local function carriedFraction(fraction, window, band)
if window == band.window then return fraction end
return (mulDiv(fraction, band.window, window))
end
local function roomOf(band, water, fraction, window)
if water >= band.capacity then return 0, 0 end
if fraction == 0 then return band.capacity - water, 0 end
return band.capacity - water - 1, carriedFraction(window - fraction, window, band)
end
local function roomAt(band, now, water, part, at, window)
if not water then return band.capacity, 0 end
local whole, fraction = roomOf(band, water, part, window)
return refill(whole, fraction, band, now > at and now - at or 0)
end
local function waitFor(whole, fraction, band, permits, maxWaitTicks)
if permits > band.capacity then return never end
local untilRoom = ticksUntil(whole, fraction, permits, band)
if maxWaitTicks == 0 then return untilRoom end
local untilTurn = ticksUntil(whole, fraction, band.capacity, band) - maxWaitTicks
return untilTurn > untilRoom and untilTurn or untilRoom
end
local function waterOf(whole, fraction, band, now)
if fraction == 0 then return band.capacity - whole, 0, now, band.window end
return band.capacity - whole - 1, band.window - fraction, now, band.window
end
return {
stamp = 3,
endsAtReset = true,
step = function(band, permits, now, maxWaitTicks, water, part, at, window)
local whole, fraction = roomAt(band, now, water, part, at, window)
local wait = waitFor(whole, fraction, band, permits, maxWaitTicks)
local charged = permits > 0 and wait == 0
local delay = charged and exactTicksUntil(whole, fraction, band.capacity, band) or 0
local left = charged and whole - permits or whole
local resetAt = now + ticksUntil(left, fraction, band.capacity, band)
local changes = charged or (water and now < at)
return permits == 0 and 0 or wait, delay, left, resetAt, changes, waterOf(left, fraction, band, now)
end,
refund = function(band, permits, now, grantedAt, water, part, at, window)
local whole, fraction = roomAt(band, now, water, part, at, window)
local slotAt = ceil(grantedAt)
local slotEndsAt = slotAt + ticksUntil(0, 0, permits, band)
local endsAt = now + ticksUntil(whole, fraction, band.capacity, band)
whole = whole + permits
if whole >= band.capacity then whole, fraction = band.capacity, 0 end
local lastRelease = now + ticksUntil(whole, fraction, band.capacity, band)
local applies = slotAt == now or lastRelease <= slotAt + 1
if slotAt < now then applies = endsAt <= slotEndsAt + 1 end
return applies, waterOf(whole, fraction, band, now)
end,
expiresAt = function(band, water, part, at, window)
local whole, fraction = roomOf(band, water, part, window)
return at + ticksUntil(whole, fraction, band.capacity, band)
end,
}
end)() end
if kind == 4 then algorithm = (function()
local function answer(wait, permits, maxWaitTicks)
if permits == 0 then return 0, 0, false end
if wait <= maxWaitTicks then return 0, wait, true end
return wait - maxWaitTicks, 0, false
end
local function windowOf(tick, band)
return floor(tick / band.window) * band.window
end
local function windowAt(written, writtenAt, now, band)
local current = windowOf(now, band)
written = windowOf(written, band)
if now >= writtenAt then return current > written and current or written end
local ahead = written - windowOf(writtenAt, band)
return ahead > 0 and current + ahead or current
end
local unknown = -1
local function countsAt(band, now, window, count, at, before)
if not window then return windowOf(now, band), 0, unknown end
local open = windowAt(window, at, now, band)
if now < at or windowOf(window, band) >= open then return open, count, before end
return open, 0, unknown
end
return {
stamp = 3,
isWindow = true,
step = function(band, permits, now, maxWaitTicks, written, counted, at, previous)
local open, count, before = countsAt(band, now, written, counted, at, previous)
local fits = count + permits <= band.capacity
local granted = (fits or permits == 0) and open or open + band.window
local wait = granted > now and granted - now or 0
if permits > band.capacity then wait = never end
local retryAfter, delay, charged = answer(wait, permits, maxWaitTicks)
local window, after = open, count
if charged then
window, after = granted, (fits and count or 0) + permits
if window > open then before = count end
end
local remaining = (window > now or after > band.capacity) and 0 or band.capacity - after
local changes = charged or (written and now < at)
return retryAfter, delay, remaining, window + band.window, changes, window, after, now, before
end,
refund = function(band, permits, now, grantedAt, written, counted, at, previous)
local open, count, before = countsAt(band, now, written, counted, at, previous)
count = count > permits and count - permits or 0
local applies = windowOf(grantedAt, band) == open
if count == 0 and before >= 0 and open > windowOf(now, band) then
return applies, open - band.window, before, now, unknown
end
return applies, open, count, now, before
end,
expiresAt = function(band, window, count)
return windowOf(window, band) + (count > 0 and band.window or 0)
end,
}
end)() end
if kind == 5 then algorithm = (function()
local function answer(wait, permits, maxWaitTicks)
if permits == 0 then return 0, 0, false end
if wait <= maxWaitTicks then return 0, wait, true end
return wait - maxWaitTicks, 0, false
end
local headerBytes, entryBytes, pageEntries = 41, 16, 64
local function withEntries(log, name)
local pages = {}
log.written = {}
log.removeOldest = function(count)
log.head = log.head + count
log.size = log.size - count
end
log.write = function(index, instant, total)
log.written[log.head + index] = { instant, total }
end
log.read = function(index)
local slot = log.head + index
local entry = log.written[slot]
if entry then return entry[1], entry[2] end
local page = floor((slot - 1) / pageEntries)
if not pages[page] then
local from = headerBytes + page * pageEntries * entryBytes
pages[page] = call('GETRANGE', name, from, from + pageEntries * entryBytes - 1)
end
return unpackNumbers('<dd', pages[page], (slot - 1 - page * pageEntries) * entryBytes + 1)
end
return log
end
local logKind = 5
local function newLog()
return withEntries({ seenAt = 0, shift = 0, base = 0, head = 0, size = 0, isNew = true })
end
local function openLog(name)
local header = redis.pcall('GETRANGE', name, 0, headerBytes - 1)
if type(header) == 'table' then return notABucket end
if header == '' then return 0 end
local kind = string.byte(header)
if kind ~= logKind then return kind <= kindCount and kind or notABucket end
if #header < headerBytes then return notABucket end
local _, seenAt, shift, base, head, size = unpackNumbers('<Bddddd', header)
return kind, withEntries({ seenAt = seenAt, shift = shift, base = base, head = head, size = size }, name)
end
local function packHeader(log)
return pack('<Bddddd', logKind, log.seenAt, log.shift, log.base, log.head, log.size)
end
local function changedSlots(log)
local slots = {}
for slot in pairs(log.written) do
if slot > log.head and slot <= log.head + log.size then slots[#slots + 1] = slot end
end
table.sort(slots)
return slots
end
local function writeEntries(log, name)
local slots = changedSlots(log)
local first = 1
while first <= #slots do
local last, entries = first, {}
repeat
local entry = log.written[slots[last]]
entries[#entries + 1] = pack('<dd', entry[1], entry[2])
last = last + 1
until slots[last] ~= slots[last - 1] + 1
call('SETRANGE', name, headerBytes + (slots[first] - 1) * entryBytes, table.concat(entries))
first = last
end
end
local function writeLog(log, name, expiresAt)
if expiresAt <= now then return call('DEL', name) end
local isSparse = log.head > pageEntries and log.head > log.size
if log.isNew then call('SET', name, packHeader(log)) end
writeEntries(log, name)
if isSparse then
local from = headerBytes + log.head * entryBytes
local kept = call('GETRANGE', name, from, from + log.size * entryBytes - 1)
log.head = 0
call('SET', name, packHeader(log) .. kept)
elseif not log.isNew then call('SETRANGE', name, 0, packHeader(log)) end
local expiry = ceil((expiresAt - expiryBase) / 1000) + expiryMargin
if expiryOption == 'PX' then call('PEXPIRE', name, expiry) else call('PEXPIREAT', name, expiry) end
end
local function timeAt(log, index)
return (log.read(index)) + log.shift
end
local function totalOf(log, count)
if count == 0 then return log.base end
local _, total = log.read(count)
return total
end
local function countUntil(log, tick)
local low, high = 0, log.size
local width = 1
while low + width <= high and timeAt(log, low + width) <= tick do
low = low + width
width = width * 2
end
if low + width <= high then high = low + width - 1 end
while low < high do
local middle = ceil((low + high) / 2)
if timeAt(log, middle) <= tick then low = middle else high = middle - 1 end
end
return low
end
local function grantedAfter(log, tick)
return totalOf(log, log.size) - totalOf(log, countUntil(log, tick))
end
local function nthAfter(log, tick, n)
local first = countUntil(log, tick)
local target = totalOf(log, first) + n
local low, high = first + 1, log.size
while low < high do
local middle = floor((low + high) / 2)
if totalOf(log, middle) >= target then high = middle else low = middle + 1 end
end
return timeAt(log, low)
end
local function shiftOf(log, now)
return now < log.seenAt and now - log.seenAt or 0
end
local function earliest(log, band, permits, now, shift)
if log.size == 0 then return now end
local from = timeAt(log, log.size) + shift
if now > from then from = now end
local horizon = from - shift - band.window
local excess = grantedAfter(log, horizon) + permits - band.capacity
if excess <= 0 then return from end
return nthAfter(log, horizon, excess) + shift + band.window
end
local function takeBack(log, at, permits)
local index = countUntil(log, at)
while index > 0 and permits > 0 do
local _, total = log.read(index)
local here = total - totalOf(log, index - 1)
local taken = permits < here and permits or here
for later = index, log.size do
local instant, sum = log.read(later)
log.write(later, instant, sum - taken)
end
permits = permits - taken
index = index - 1
end
while log.size > 0 and totalOf(log, log.size) == totalOf(log, log.size - 1) do log.size = log.size - 1 end
end
local function append(log, at, permits)
local total = totalOf(log, log.size) + permits
if log.size == 0 or timeAt(log, log.size) ~= at then log.size = log.size + 1 end
log.write(log.size, at - log.shift, total)
end
return {
open = openLog,
write = writeLog,
step = function(band, permits, now, maxWaitTicks, log)
local shift = log and shiftOf(log, now) or 0
local newest = log and log.size > 0 and timeAt(log, log.size) + shift or nil
local counted = log and grantedAfter(log, now - shift - band.window) or 0
local possible = permits > 0 and permits <= band.capacity
local at = possible and log and earliest(log, band, permits, now, shift) or now
local wait = permits > band.capacity and never or at - now
local retryAfter, delay, charged = answer(wait, permits, maxWaitTicks)
if charged then
newest = at
counted = counted + permits
end
local remaining = newest and newest > now and 0 or band.capacity - counted
local resetAt = newest and newest + band.window or now
return retryAfter, delay, remaining > 0 and remaining or 0, resetAt > now and resetAt or now, charged or shift ~= 0,
now, shift, now - band.window, at, charged and permits or 0
end,
refund = function(band, permits, now, grantedAt, log)
return true, now, shiftOf(log, now), now - band.window, grantedAt, -permits
end,
apply = function(log, seenAt, shift, forgetUntil, at, permits)
log = log or newLog()
log.shift = log.shift + shift
log.seenAt = seenAt
local over = countUntil(log, forgetUntil)
log.base = totalOf(log, over)
log.removeOldest(over)
if permits > 0 then append(log, at, permits)
elseif permits < 0 then takeBack(log, at, -permits) end
return log
end,
unchangedUntil = function(band, now, log)
local shift = shiftOf(log, now)
local over = countUntil(log, now - shift - band.window)
if over == log.size then return 2 ^ 53 end
local leaves, newest = timeAt(log, over + 1) + shift + band.window, timeAt(log, log.size) + shift
return newest > now and newest < leaves and newest or leaves
end,
expiresAt = function(band, log)
return log.size == 0 and 0 or timeAt(log, log.size) + band.window
end,
}
end)() end
if kind == 6 then algorithm = (function()
local exactLimit = 9007199254740992
local function longMulDiv(a, b, m)
local place = 1
while place * 128 <= b do place = place * 128 end
local quotient, rest = 0, 0
while place >= 1 do
local figure = floor(b / place)
b = b - figure * place
local value = rest * 128 + a * figure
local share = floor(value / m)
quotient = quotient * 128 + share
rest = value - share * m
place = place / 128
end
return quotient, rest
end
local function mulDiv(a, b, m)
local product = a * b
if product >= exactLimit then return longMulDiv(a, b, m) end
local quotient = floor(product / m)
return quotient, product - quotient * m
end
local function answer(wait, permits, maxWaitTicks)
if permits == 0 then return 0, 0, false end
if wait <= maxWaitTicks then return 0, wait, true end
return wait - maxWaitTicks, 0, false
end
local function windowOf(tick, band)
return floor(tick / band.window) * band.window
end
local function windowAt(written, writtenAt, now, band)
local current = windowOf(now, band)
written = windowOf(written, band)
if now >= writtenAt then return current > written and current or written end
local ahead = written - windowOf(writtenAt, band)
return ahead > 0 and current + ahead or current
end
local function mulDivUp(a, b, m)
local quotient, rest = mulDiv(a, b, m)
return rest > 0 and quotient + 1 or quotient
end
local function weight(window, previous, band, now)
if previous == 0 then return 0 end
return mulDivUp(band.window - (now - window), previous, band.window)
end
local function countsAt(band, now, written, previous, current, writtenAt)
if not written then return windowOf(now, band), 0, 0 end
local window = windowAt(written, writtenAt, now, band)
written = windowOf(written, band)
if now < writtenAt then
local kept = weight(written, previous, band, written > writtenAt and written or writtenAt)
return window, 0, current + kept
end
if written == window then return window, previous, current end
return window, written == window - band.window and current or 0, 0
end
local function fadeTicks(count, free, window)
if count <= free then return 0 end
return window - (mulDiv(free, window, count))
end
local function earliest(window, previous, current, band, permits, now)
local free = band.capacity - current - permits
if free >= 0 then
local at = window + fadeTicks(previous, free, band.window)
if now > at then at = now end
if at < window + band.window then return at end
end
return window + band.window + fadeTicks(current, band.capacity - permits, band.window)
end
local function charge(window, previous, current, band, permits, at)
local following = window + band.window
if at < following then return window, previous, current + permits end
if at < following + band.window then return following, current, permits end
return following + band.window, 0, permits
end
return {
stamp = 4,
step = function(band, permits, now, maxWaitTicks, written, before, counted, writtenAt)
local window, previous, current = countsAt(band, now, written, before, counted, writtenAt)
local possible = permits > 0 and permits <= band.capacity
local at = possible and earliest(window, previous, current, band, permits, now) or now
local wait = permits > band.capacity and never or at - now
local retryAfter, delay, charged = answer(wait, permits, maxWaitTicks)
if charged then window, previous, current = charge(window, previous, current, band, permits, at) end
local remaining = window > now and 0 or band.capacity - current - weight(window, previous, band, now)
local changes = charged or (written and now < writtenAt)
return retryAfter, delay, remaining > 0 and remaining or 0, window + band.window, changes,
window, previous, current, now
end,
refund = function(band, permits, now, grantedAt, written, before, counted, writtenAt)
local window, previous, current = countsAt(band, now, written, before, counted, writtenAt)
local granted = windowOf(grantedAt, band)
if granted == window - band.window then
return true, window, previous > permits and previous - permits or 0, current, now
end
return granted == window, window, previous, current > permits and current - permits or 0, now
end,
expiresAt = function(band, window, previous, current)
local windows = current > 0 and 2 or previous > 0 and 1 or 0
return windowOf(window, band) + windows * band.window
end,
}
end)() end
algorithms[kind] = algorithm
end
return {
kind = kind,
capacity = capacity,
tokens = tokens,
window = window,
algorithm = algorithm,
step = algorithm.step,
endsAtReset = algorithm.endsAtReset,
}
end
return {
new = new,
add = function(band)
count = count + 1
known[count] = band
return count
end,
at = function(number)
local band, offset = known[number], 4 * number
if not band then
band = new(numbers[offset + 1], numbers[offset + 2], numbers[offset + 3], numbers[offset + 4])
known[number] = band
end
return band
end,
}
end)()
end
local bandAt, operations = bands.at, nil
local function expiryArgument(expiresAt)
return format('%d', ceil((expiresAt - expiryBase) / 1000) + expiryMargin)
end
local function writeCells(name, band, resetAt, first, second, third, fourth)
local expiresAt = band.endsAtReset and resetAt or band.algorithm.expiresAt(band, first, second, third, fourth)
if expiresAt <= now then return call('DEL', name) end
call('SET', name, pack('<Bdddd', band.kind, first, second, third, fourth), expiryOption, expiryArgument(expiresAt))
end
local problems = {}
local function loadOperations()
if not operations then
operations = (function()
local BACKDATE = 8
local held
local function loadHeld()
if not held then
held = (function()
local leaseTicks = 1000000
local maxLeaseTicks = 4 * leaseTicks
local function heldIn(lots)
return lots.heldEarlier + lots.heldLater
end
local function freeBand(lots, band)
return { capacity = band.capacity - heldIn(lots), tokens = band.tokens, window = band.window }
end
local function advance(lots, band, tick, first, second, third, fourth)
local _, _, _, _, _, newFirst, newSecond, newThird, newFourth =
band.algorithm.step(freeBand(lots, band), 0, tick, 0, first, second, third, fourth)
return newFirst, newSecond, newThird, newFourth
end
local function dropEarliest(lots, band, first, second, third, fourth)
local endsAt = lots.heldEarlier > 0 and lots.earlier or lots.later
first, second, third, fourth = advance(lots, band, endsAt, first, second, third, fourth)
if lots.heldEarlier > 0 then lots.heldEarlier = 0 else lots.heldLater = 0 end
return endsAt, first, second, third, fourth
end
local function waitForLots(lots, band, permits, now, maxWaitTicks, first, second, third, fourth)
local remainingLots = { earlier = lots.earlier, heldEarlier = lots.heldEarlier, later = lots.later, heldLater = lots.heldLater }
local tick
repeat
tick, first, second, third, fourth = dropEarliest(remainingLots, band, first, second, third, fourth)
until permits <= band.capacity - heldIn(remainingLots)
return tick - now + band.algorithm.step(freeBand(remainingLots, band), permits, tick, maxWaitTicks, first, second, third, fourth)
end
return {
heldIn = heldIn,
leaseEnd = function(now)
return (floor(now / leaseTicks) + 2) * leaseTicks
end,
dropEnded = function(lots, band, now, first, second, third, fourth)
if lots.earlier > now + maxLeaseTicks then lots.earlier = now + maxLeaseTicks end
if lots.later > now + maxLeaseTicks then lots.later = now + maxLeaseTicks end
while lots.heldEarlier > 0 and lots.earlier <= now or lots.heldEarlier == 0 and lots.heldLater > 0 and lots.later <= now do
local _
_, first, second, third, fourth = dropEarliest(lots, band, first, second, third, fourth)
end
return first, second, third, fourth
end,
step = function(lots, band, permits, now, maxWaitTicks, first, second, third, fourth)
local free = freeBand(lots, band)
local needsHeld = permits > free.capacity and permits <= band.capacity
local retryAfter, delay, remaining, _, changes, newFirst, newSecond, newThird, newFourth =
band.algorithm.step(free, needsHeld and 0 or permits, now, needsHeld and 0 or maxWaitTicks, first, second, third, fourth)
if needsHeld then retryAfter = waitForLots(lots, band, permits, now, maxWaitTicks, first, second, third, fourth) end
local resetAt = band.algorithm.expiresAt(band, newFirst, newSecond, newThird, newFourth)
return retryAfter, delay, remaining, resetAt, changes, newFirst, newSecond, newThird, newFourth
end,
refund = function(lots, band, permits, now, grantedAt, first, second, third, fourth)
return band.algorithm.refund(freeBand(lots, band), permits, now, grantedAt, first, second, third, fourth)
end,
hold = function(lots, permits, endsAt)
if not lots then return { earlier = endsAt, heldEarlier = 0, later = endsAt, heldLater = permits } end
if endsAt == lots.later then lots.heldLater = lots.heldLater + permits
elseif endsAt == lots.earlier then lots.heldEarlier = lots.heldEarlier + permits
else
lots.heldLater, lots.heldEarlier = heldIn(lots), 0
if endsAt > lots.later then
lots.earlier, lots.heldEarlier, lots.later, lots.heldLater = lots.later, lots.heldLater, endsAt, permits
else lots.earlier, lots.heldEarlier = endsAt, permits end
end
return lots
end,
release = function(lots, band, permits, endsAt, now, first, second, third, fourth)
first, second, third, fourth = advance(lots, band, now, first, second, third, fourth)
local amount = 0
if lots.later == endsAt then
amount = math.min(math.abs(permits), lots.heldLater)
lots.heldLater = lots.heldLater - amount
elseif lots.earlier == endsAt then
amount = math.min(math.abs(permits), lots.heldEarlier)
lots.heldEarlier = lots.heldEarlier - amount
end
if permits > 0 or amount == 0 then return first, second, third, fourth end
return select(2, band.algorithm.refund(freeBand(lots, band), amount, now, now, first, second, third, fourth))
end,
refilledAt = function(lots, band)
local held = heldIn(lots)
return held == 0 and 0 or lots.later + ceil(held / band.tokens) * band.window
end,
}
end)()
end
return held
end
local kinds, firsts, seconds, thirds, fourths = {}, {}, {}, {}, {}
local lotsOf, changed, changedKeys = {}, {}, {}
local function openBucket(key, band)
if not kinds[key] then
local value = values and values[key]
if band.algorithm.open then kinds[key], firsts[key] = band.algorithm.open(KEYS[key])
elseif not value then kinds[key] = 0
elseif #value == 33 then
kinds[key], firsts[key], seconds[key], thirds[key], fourths[key] = unpackNumbers('<Bdddd', value)
elseif #value == 65 then
local lots = {}
kinds[key], firsts[key], seconds[key], thirds[key], fourths[key],
lots.earlier, lots.heldEarlier, lots.later, lots.heldLater = unpackNumbers('<Bdddddddd', value)
lotsOf[key] = lots
loadHeld()
else
local kind = string.byte(value)
kinds[key] = kind and kind ~= band.kind and kind <= kindCount and kind or notABucket
end
end
if kinds[key] == notABucket then return notABucket end
if kinds[key] ~= band.kind then firsts[key], lotsOf[key] = nil, nil end
local lots = lotsOf[key]
if lots then
firsts[key], seconds[key], thirds[key], fourths[key] =
held.dropEnded(lots, band, now, firsts[key], seconds[key], thirds[key], fourths[key])
if held.heldIn(lots) == 0 then lotsOf[key] = nil end
end
end
local function willWrite(key, band)
if not changed[key] then changedKeys[#changedKeys + 1] = key end
changed[key] = band
end
local function commit(key, band, first, second, third, fourth, fifth)
willWrite(key, band)
kinds[key] = band.kind
if band.algorithm.apply then
firsts[key] = band.algorithm.apply(firsts[key], first, second, third, fourth, fifth)
else
firsts[key], seconds[key], thirds[key], fourths[key] = first, second, third, fourth
end
end
local keys, bandsOf, permitsOf, maxWaitsOf, instants = {}, {}, {}, {}, {}
local oldFirsts, oldSeconds, oldThirds, oldFourths, movedFrom = {}, {}, {}, {}, {}
local isExclusive
local shadows, ends, allowing = {}, {}, {}
local retries, delays, remainders, resets, writes = {}, {}, {}, {}, {}
local nextFirsts, nextSeconds, nextThirds, nextFourths, nextFifths = {}, {}, {}, {}, {}
local function emit(number)
length = length + 1
results[length] = number == never and -1 or number
end
local function step(i, permits, maxWaitTicks)
local band, lots = bandsOf[i], lotsOf[keys[i]]
if lots then
return held.step(lots, band, permits, now, maxWaitTicks, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i])
end
return band.algorithm.step(band, permits, now, maxWaitTicks, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i])
end
local function stepInto(i)
retries[i], delays[i], remainders[i], resets[i], writes[i],
nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i], nextFifths[i] = step(i, permitsOf[i], maxWaitsOf[i])
return retries[i] == 0
end
local function write(i, first, second, third, fourth, fifth)
if isExclusive and not lotsOf[keys[i]] then return writeCells(KEYS[keys[i]], bandsOf[i], nil, first, second, third, fourth) end
commit(keys[i], bandsOf[i], first, second, third, fourth, fifth)
end
local function stampOf(i)
local algorithm = bandsOf[i].algorithm
if algorithm.open then return oldFirsts[i].seenAt end
return (select(algorithm.stamp, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i]))
end
local function moveBack(i, _, _, _, _, changes, first, second, third, fourth, fifth)
if not changes then return end
movedFrom[i] = stampOf(i)
write(i, first, second, third, fourth, fifth)
if not bandsOf[i].algorithm.open then
oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i] = first, second, third, fourth
end
end
local function skip(i, keepResult)
local allowed = retries[i] == 0
if not allowed and not writes[i] then return end
if allowed and not keepResult then
local _
_, delays[i], remainders[i], resets[i] = step(i, 0, 0)
end
moveBack(i, step(i, 0, 0))
end
local function emitState(i)
local algorithm, first = bandsOf[i].algorithm, oldFirsts[i]
local size = lotsOf[keys[i]] and -1 or first and (movedFrom[i] or 4) or 0
local second = oldSeconds[i]
if first and algorithm.unchangedUntil then
first, second = algorithm.unchangedUntil(bandsOf[i], now, first), first.seenAt
end
results[length + 1], results[length + 2], results[length + 3] = size, size > 0 and first or 0, second or 0
results[length + 4], results[length + 5] = oldThirds[i] or 0, oldFourths[i] or 0
length = length + 5
end
local function emitBands(count, withStates)
for i = count, 1, -1 do
results[length + 1], results[length + 2] = retries[i] == never and -1 or retries[i], delays[i]
results[length + 3], results[length + 4] = remainders[i], resets[i]
length = length + 4
if withStates then emitState(i) end
end
end
local function chargeAll(items, peek)
local granted, count = true, 0
for item = 1, items do
local allows = true
for i = count + 1, ends[item] do allows = stepInto(i) and allows end
count = ends[item]
allowing[item] = allows
if not allows and shadows[item] == 0 then granted = false end
end
emit(granted and GRANTED or DENIED)
local i = 0
for item = 1, items do
local charged = granted and allowing[item]
while i < ends[item] do
i = i + 1
if charged and not peek then
write(i, nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i], nextFifths[i])
else skip(i, charged) end
end
end
emitBands(count, not granted)
end
local function refund(count)
for i = 1, count do
local band, lots = bandsOf[i], lotsOf[keys[i]]
if oldFirsts[i] then
local grantedAt = instants[i] < 0 and now or instants[i]
local applies, first, second, third, fourth, fifth
if lots then
applies, first, second, third, fourth = held.refund(lots, band, permitsOf[i], now, grantedAt,
oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i])
else
applies, first, second, third, fourth, fifth = band.algorithm.refund(band, permitsOf[i], now, grantedAt,
oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i])
end
if applies then write(i, first, second, third, fourth, fifth) else moveBack(i, step(i, 0, 0)) end
end
end
emit(GRANTED)
end
local function backdate(count)
for i = 1, count do
local band, instant = bandsOf[i], instants[i]
if oldFirsts[i] and instant >= 0 and not lotsOf[keys[i]] and stampOf(i) == permitsOf[i] then
moveBack(i, band.algorithm.step(band, 0, instant, 0, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i]))
end
end
emit(GRANTED)
end
local function reset(count)
for i = 1, count do
local key = keys[i]
kinds[key], firsts[key], lotsOf[key] = 0, nil, nil
willWrite(key, bandsOf[i])
end
emit(GRANTED)
end
local function lease(count, wanted)
loadHeld()
local amount = wanted
for i = 1, count do
local _, _, remaining = step(i, 0, 0)
if remaining < amount then amount = remaining end
end
if amount < permitsOf[1] then amount = permitsOf[1] end
local granted, endsAt = true, never
for i = 1, count do
permitsOf[i] = amount
granted = stepInto(i) and granted
endsAt = math.min(endsAt, bandsOf[i].algorithm.isWindow and resets[i] or held.leaseEnd(now))
end
emit(granted and GRANTED or DENIED)
for i = 1, count do
if not granted then skip(i, false)
else
write(i, nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i])
if not bandsOf[i].algorithm.isWindow then lotsOf[keys[i]] = held.hold(lotsOf[keys[i]], amount, endsAt) end
end
end
emitBands(count)
if granted then
emit(amount)
emit(endsAt)
end
end
local function settle(count)
for i = 1, count do
local key, band, permits, endsAt = keys[i], bandsOf[i], permitsOf[i], instants[i]
local lots, first, second, third, fourth = lotsOf[key], firsts[key], seconds[key], thirds[key], fourths[key]
if lots then
commit(key, band, held.release(lots, band, permits, endsAt, now, first, second, third, fourth))
elseif first and permits < 0 and band.algorithm.isWindow then
local applies
applies, first, second, third, fourth = band.algorithm.refund(band, -permits, now, endsAt - 1, first, second, third, fourth)
if applies then commit(key, band, first, second, third, fourth) end
end
end
emit(GRANTED)
end
local function loadBand(i, key, band)
local value = isExclusive and values[key]
if isExclusive and not value then
oldFirsts[i] = nil
return
end
if isExclusive and #value == 33 then
local kind
kind, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i] = unpackNumbers('<Bdddd', value)
if kind ~= band.kind then oldFirsts[i] = nil end
return
end
local problem = openBucket(key, band)
oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i] = firsts[key], seconds[key], thirds[key], fourths[key]
return problem
end
local function prepare(i, permits, maxWaitTicks, key, number)
local band = bandAt(number)
keys[i], bandsOf[i], permitsOf[i], maxWaitsOf[i], movedFrom[i] = key, band, permits, maxWaitTicks, nil
local problem = loadBand(i, key, band)
return problem and KEYS[key] .. ' ' .. problem
end
local function readPlain()
local count, problem = numbers[position + 2], nil
position, isExclusive = position + 2, false
for i = 1, count do
problem = prepare(i, numbers[position + 1], numbers[position + 2], numbers[position + 3], numbers[position + 4]) or problem
position = position + 4
end
shadows[1], ends[1] = 0, count
return problem
end
local function readRun(offset, count, key)
local problem
isExclusive = true
for i = 1, count do
problem = prepare(i, numbers[offset + 1], numbers[offset + 2], key + i - 1, numbers[offset + 3]) or problem
offset = offset + 3
end
shadows[1], ends[1] = 0, count
return problem
end
local function readItems()
local items, count, problem = numbers[position + 3], 0, nil
isExclusive = numbers[position + 2] == 1
position = position + 3
for item = 1, items do
local permits, maxWaitTicks, itemBands = numbers[position + 1], numbers[position + 2], numbers[position + 4]
shadows[item] = numbers[position + 3]
position = position + 4
for i = count + 1, count + itemBands do
problem = prepare(i, permits, maxWaitTicks, numbers[position + 1], numbers[position + 2]) or problem
instants[i] = numbers[position + 3]
position = position + 3
end
count = count + itemBands
ends[item] = count
end
return items, count, problem
end
local function writeHeld(name, band, lots, first, second, third, fourth)
local expiresAt = math.max(held.refilledAt(lots, band), band.algorithm.expiresAt(band, first, second, third, fourth))
local value = pack('<Bdddddddd', band.kind, first, second, third, fourth,
lots.earlier, lots.heldEarlier, lots.later, lots.heldLater)
call('SET', name, value, expiryOption, expiryArgument(expiresAt))
end
local function fail(problem)
emit(FAILED)
problems[#problems + 1] = problem
end
return {
decide = function(operation)
local items, count, problem = 1, nil, nil
if operation == PLAIN then problem = readPlain() else items, count, problem = readItems() end
if operation == RESET then reset(count)
elseif problem then fail(problem)
elseif operation == PLAIN or operation == CHARGE then chargeAll(items, false)
elseif operation == PEEK then chargeAll(items, true)
elseif operation == REFUND then refund(count)
elseif operation == LEASE then lease(count, shadows[1])
elseif operation == BACKDATE then backdate(count)
else settle(count) end
end,
chargeInRun = function(offset, count, key)
local problem = readRun(offset, count, key)
if problem then fail(problem) else chargeAll(1, false) end
end,
writeAll = function()
for _, key in ipairs(changedKeys) do
local band, name, lots = changed[key], KEYS[key], lotsOf[key]
local first, second, third, fourth = firsts[key], seconds[key], thirds[key], fourths[key]
if not first then call('DEL', name)
elseif band.algorithm.write then band.algorithm.write(first, name, band.algorithm.expiresAt(band, first))
elseif lots and lots.heldEarlier + lots.heldLater > 0 then
writeHeld(name, band, lots, first, second, third, fourth)
else writeCells(name, band, nil, first, second, third, fourth) end
end
end,
}
end)()
end
return operations
end
local function charge(offset, key, bandsLeft, allowed, delayed)
local permits, maxWaitTicks, band = numbers[offset + 1], numbers[offset + 2], bandAt(numbers[offset + 3])
local kind, first, second, third, fourth
local value = values[key]
if value then kind, first, second, third, fourth = unpackNumbers('<Bdddd', value) end
if kind ~= band.kind then first = nil end
local retryAfter, delay, remaining, resetAt, writes, newFirst, newSecond, newThird, newFourth =
band.step(band, permits, now, maxWaitTicks, first, second, third, fourth)
local granted = allowed and retryAfter == 0
delayed = delayed or delay > 0
if bandsLeft > 1 then granted, delayed = charge(offset + 3, key + 1, bandsLeft - 1, granted, delayed)
else
length = length + 1
results[length] = not granted and DENIED or delayed and GRANTED or ALLOWED
end
if not granted and retryAfter == 0 then
local _
_, delay, remaining, resetAt, writes, newFirst, newSecond, newThird, newFourth =
band.step(band, 0, now, 0, first, second, third, fourth)
end
local size = first and 4 or 0
if writes then
if not granted then size = select(band.algorithm.stamp, first, second, third, fourth) end
first, second, third, fourth = newFirst, newSecond, newThird, newFourth
writeCells(KEYS[key], band, resetAt, first, second, third, fourth)
end
if granted and not delayed then
results[length + 1], results[length + 2] = remaining, resetAt
length = length + 2
return granted, delayed
end
results[length + 1], results[length + 2] = retryAfter == never and -1 or retryAfter, delay
results[length + 3], results[length + 4] = remaining, resetAt
length = length + 4
if not granted then
results[length + 1], results[length + 2], results[length + 3] = size, first or 0, second or 0
results[length + 4], results[length + 5] = third or 0, fourth or 0
length = length + 5
end
return granted, delayed
end
return {
problems = problems,
charge = function(offset, count, key)
for i = key, key + count - 1 do
local value = values[i]
if value and #value ~= 33 then return loadOperations().chargeInRun(offset, count, key) end
end
if count > 0 then return charge(offset, key, count, true, false) end
length = length + 1
results[length] = ALLOWED
end,
decide = function(operation) loadOperations().decide(operation) end,
finish = function()
if operations then operations.writeAll() end
end,
}
end)()
end
if isRun then slowPath.charge(offset, count, key) else slowPath.decide(operation) end
end
if isRun then key = key + count end
end
end
if slowPath then slowPath.finish() end
local packed = pack('<' .. string.rep('d', math.min(unpackLimit, length)), unpack(results, 1, math.min(unpackLimit, length)))
for from = unpackLimit + 1, length do packed = packed .. pack('<d', results[from]) end
local extra = slowPath and slowPath.problems
if applied then
extra = extra or {}
extra[#extra + 1] = applied
end
if extra and extra[1] then return { packed, unpack(extra) } end
return packed`,
}
