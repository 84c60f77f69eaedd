/** Generated from consume.lua by scripts/assemble-lua.mjs; do not edit. */
export const consumeScript = {
  sha: 'c0992cf75d8f10a8188547b0c888441a2efedc49',
  source: `local RUN = 7
local FAILED, ALLOWED, EMPTY = 2, 3, 4
local TOKEN_BUCKET, FIXED_WINDOW = 1, 4
local call, pack, unpackNumbers = redis.call, struct.pack, struct.unpack
local floor, ceil, format, rep = math.floor, math.ceil, string.format, string.rep
local keys = KEYS
local exactLimit = 9007199254740992
local numbers = cjson.decode(ARGV[1])
local now, cellKeys, bandCount, entryCount = numbers[1], numbers[2], numbers[3], numbers[4]
local position = 4 + 4 * bandCount
local expiryOption, expiryBase, expiryMargin = 'PXAT', 0, -1 - now
if now >= 0 then expiryOption, expiryBase, expiryMargin = 'PX', now, 86400000
else
local time = call('TIME')
now = time[1] * 1000000 + time[2]
end
local values = cellKeys > 0 and call('MGET', unpack(KEYS, 1, cellKeys))
local places, lookups, found
if ARGV[2] then
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
local results, length, decision = { now }, 1, 0
local cells, formats, windowFormats, stamps = {}, {}, {}, {}
local charged, assigned, assignments, expiries = 0, 0, {}, {}
local positions = {}
local packed, expiresAt = {}, {}
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
areWindows = areWindows and algorithm == FIXED_WINDOW and type(numbers[4 * band + 4]) == 'number'
end
end
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
local isDone, written, newValue, newExpiry = false, 0, nil, nil
if listed then key = numbers[listed + 1] end
if isBucket then
local value = values[key] or unused
if #value == 28 then
local storedTag, whole, storedLevel, at, storedWindow = unpackNumbers('<I4i5I6I7I6', value)
local level = storedLevel + (now - at) * tokens
if storedTag == tag and storedWindow == window and now >= at and level < exactLimit then
local left = whole
if level >= window then
local gained = floor(level / window)
left, level = left + gained, level - gained * window
end
if left >= capacity then left, level = capacity, 0 end
left = left - permits
local missing = (capacity - left) * window
if missing < exactLimit then
if left >= 0 then
local lacking = missing - level
local fillTicks = lacking / tokens
isDone, length = true, length + 1
results[length] = -lacking
newValue, newExpiry = pack('<I4i5I6c0', tag, left, level, stamp), now + (fillTicks + -fillTicks % 1)
elseif whole >= 0 and maxWaitTicks == 0 and value ~= unused then
results[length + 1], results[length + 2], results[length + 3], results[length + 4] = EMPTY, whole, storedLevel, at
isDone, length = true, length + 4
end
end
end
end
elseif isWindow then
local value, open, count, before = values[key], floor(now / window) * window, 0, -1
isDone = not value or #value == 28
if value and isDone then
local storedTag, storedWindow, storedCount, storedAt, storedBefore = unpackNumbers('<I4I7I5I7i5', value)
isDone = storedTag == tag and now >= storedAt and storedWindow <= open
if storedWindow == open then count, before = storedCount, storedBefore end
end
count = count + permits
isDone = isDone and count <= capacity
if isDone then
length = length + 1
results[length] = -count
newValue, newExpiry = pack('<I4I7I5I7i5', tag, open, count, now, before), open + window
end
elseif areTokenBuckets then
isDone = true
local isEmpty, hasUnused, at = false, false, length
for item = 1, items do
local terms, value = offset + 4 * item, values[listed and numbers[listed + item] or key + item - 1]
local permits, first, count = numbers[terms - 3], 4 * numbers[terms - 1], numbers[terms]
local fillTicks, byte, cell = 0, 1, 0
if not value then hasUnused = true elseif #value ~= 28 * count then isDone = false end
for band = first, isDone and first + 4 * count - 4 or 0, 4 do
local tag, capacity, tokens, window = numbers[band + 1], numbers[band + 2], numbers[band + 3], numbers[band + 4]
local level, left = 0, capacity - permits
if value then
local writtenTag, whole, fraction, writtenAt, writtenWindow = unpackNumbers('<I4i5I6I7I6', value, byte)
level = fraction + (now - writtenAt) * tokens
if writtenTag ~= tag or writtenWindow ~= window or now < writtenAt or level >= exactLimit then
isDone = false
break
end
byte = byte + 28
if level >= window then
local gained = floor(level / window)
whole, level = whole + gained, level - gained * window
end
if whole >= capacity then whole, level = capacity, 0 end
left = whole - permits
end
local missing = (capacity - left) * window
if missing >= exactLimit then
isDone = false
break
elseif left < 0 then
isEmpty = true
break
end
local lacking = missing - level
local ticks = lacking / tokens
if ticks > fillTicks then fillTicks = ticks end
local stamp = stamps[band]
if not stamp then
stamp = pack('<I7I6', now, window)
stamps[band] = stamp
end
cells[cell + 1], cells[cell + 2], cells[cell + 3], cells[cell + 4] = tag, left, level, stamp
cell, at = cell + 4, at + 1
results[at] = -lacking
end
if isEmpty or not isDone then break end
formats[count] = formats[count] or '<' .. rep('I4i5I6c0', count)
packed[item] = pack(formats[count], unpack(cells, 1, cell))
expiresAt[item] = now + (fillTicks + -fillTicks % 1)
end
if isDone and not isEmpty then length, written = at, items
elseif isDone then
isDone, at = not hasUnused, length + 1
for item = 1, isDone and items or 0 do
local terms, value = offset + 4 * item, values[listed and numbers[listed + item] or key + item - 1]
local first, count = 4 * numbers[terms - 1], numbers[terms]
isDone = value and #value == 28 * count and numbers[terms - 2] == 0
for i = 1, isDone and count or 0 do
local band = first + 4 * i - 4
local tag, whole, fraction, writtenAt, window = unpackNumbers('<I4i5I6I7I6', value, 28 * i - 27)
isDone = tag == numbers[band + 1] and window == numbers[band + 4] and now >= writtenAt and whole >= 0
if not isDone then break end
results[at + 1], results[at + 2], results[at + 3] = whole, fraction, writtenAt
at = at + 3
end
if not isDone then break end
end
if isDone then
results[length + 1] = EMPTY
length = at
end
end
elseif areWindows then
isDone = true
local at = length
for item = 1, items do
local terms, value = offset + 4 * item, values[listed and numbers[listed + item] or key + item - 1]
local permits, first, count = numbers[terms - 3], 4 * numbers[terms - 1], numbers[terms]
local latest, byte, cell = now, 1, 0
if value and #value ~= 28 * count then isDone = false end
for band = first, isDone and first + 4 * count - 4 or 0, 4 do
local tag, capacity, window = numbers[band + 1], numbers[band + 2], numbers[band + 4]
local open, taken, before = floor(now / window) * window, permits, -1
if value then
local storedTag, storedWindow, storedCount, storedAt, storedBefore = unpackNumbers('<I4I7I5I7i5', value, byte)
isDone = storedTag == tag and now >= storedAt and storedWindow <= open
if storedWindow == open then taken, before = taken + storedCount, storedBefore end
byte = byte + 28
end
isDone = isDone and taken <= capacity
if not isDone then break end
local resetAt = open + window
if resetAt > latest then latest = resetAt end
if count == 1 then packed[item] = pack('<I4I7I5I7i5', tag, open, taken, now, before)
else
cells[cell + 1], cells[cell + 2], cells[cell + 3], cells[cell + 4], cells[cell + 5] = tag, open, taken, now, before
cell = cell + 5
end
at = at + 1
results[at] = -taken
end
if not isDone then break end
if count > 1 then
windowFormats[count] = windowFormats[count] or '<' .. rep('I4I7I5I7i5', count)
packed[item] = pack(windowFormats[count], unpack(cells, 1, cell))
end
expiresAt[item] = latest
end
if isDone then length, written = at, items end
end
if newValue and not listed then
charged, assigned = charged + 1, assigned + 2
assignments[assigned - 1], assignments[assigned], expiries[charged] = keys[key], newValue, newExpiry
else
if newValue then packed[1], expiresAt[1], written = newValue, newExpiry, 1 end
for item = 1, written do
local cell, at = key + item - 1, nil
if listed then
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
slowPath = (function()
local DENIED, GRANTED = 0, 1
local never, max = math.huge, math.max
local WIDE, LONG, cellBytes, smallLogBytes = 8, 32, 28, 12
local holdsBytes, holdBytes = 19, 17
local waitingTicks = 1000000
local definitionFormat = '<I4I4I6I6'
local longLogs
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
local function forcedPermits(band, permits, available)
local debt = band.capacity
if band.algorithm.isRefilled then
debt = math.min(debt, floor(4503599627370496 / band.window * band.tokens) - debt)
end
return math.min(permits, max(0, available + debt))
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
local function windowAfter(start, band)
return start + band.window
end
local function windowBefore(start, band)
return start - band.window
end
local algorithms, bands = {}, {}
local function newBand(tag, capacity, tokens, window)
local kind, isCalendar = tag % 8, type(window) == 'table'
local definition, suffix, definitionTerms
if type(capacity) == 'table' then
definitionTerms = capacity
definition = { capacity = capacity[2], tokens = capacity[3], window = capacity[4] }
suffix = pack(definitionFormat, capacity[2], capacity[3], capacity[4], capacity[2])
capacity = capacity[1]
end
local algorithm = algorithms[isCalendar and 'calendar' or kind]
if not algorithm then
if kind == 1 then algorithm = (function()
local function levelAt(band, now, whole, fraction, at, window)
if not whole then return band.capacity, 0 end
if window ~= band.window then fraction = carriedFraction(fraction, window, band) end
return refill(whole, fraction, band, now > at and now - at or 0)
end
return {
stamp = 3,
format = '<I4i5I6I7I6',
fits = function(whole) return whole >= -2 ^ 39 end,
isRefilled = true,
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
force = function(band, permits, now, written, part, at, window)
local whole, fraction = levelAt(band, now, written, part, at, window)
return whole - forcedPermits(band, permits, whole), fraction, now, band.window
end,
expiresAt = function(band, whole, fraction, at, window)
if window ~= band.window then fraction = carriedFraction(fraction, window, band) end
return at + ticksUntil(whole, fraction, band.capacity, band)
end,
}
end)() end
if kind == 2 then algorithm = (function()
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
format = '<I4i5I7I7I5',
fits = function(whole, _, _, lastPermits) return whole >= -2 ^ 39 and lastPermits < 2 ^ 40 end,
isRefilled = true,
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
force = function(band, permits, now, written, writtenSince, lastAt, lastPermits)
local whole, since = levelAt(band, now, written, writtenSince)
lastAt, lastPermits = lastOf(now, whole >= band.capacity, lastAt, lastPermits)
return whole - forcedPermits(band, permits, whole), since, lastAt, lastPermits
end,
expiresAt = function(band, whole, since)
return since + ticksUntilTurn(whole, since, band.capacity, band, since)
end,
}
end)() end
if kind == 3 then algorithm = (function()
local inDebt = 2 ^ 46
local function roomOf(band, water, fraction, window)
local limit = band.capacity
if window >= inDebt then
window = window - inDebt
limit = limit + forcedPermits(band, limit, 0)
end
if water >= limit then return band.capacity - limit, 0 end
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
local window = whole < 0 and band.window + inDebt or band.window
if fraction == 0 then return band.capacity - whole, 0, now, window end
return band.capacity - whole - 1, band.window - fraction, now, window
end
return {
stamp = 3,
format = '<I4I5I6I7I6',
isRefilled = true,
endsAtReset = true,
step = function(band, permits, now, maxWaitTicks, water, part, at, window)
local whole, fraction = roomAt(band, now, water, part, at, window)
local wait = waitFor(whole, fraction, band, permits, maxWaitTicks)
local charged = permits > 0 and wait == 0
local delay = charged and exactTicksUntil(whole, fraction, band.capacity, band) or 0
local left = charged and whole - permits or whole
local resetAt = now + ticksUntil(left, fraction, band.capacity, band)
local changes = charged or (water and now < at)
return permits == 0 and 0 or wait, delay, left > 0 and left or 0, resetAt, changes, waterOf(left, fraction, band, now)
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
force = function(band, permits, now, water, part, at, window)
local whole, fraction = roomAt(band, now, water, part, at, window)
return waterOf(whole - forcedPermits(band, permits, whole), fraction, band, now)
end,
expiresAt = function(band, water, part, at, window)
local whole, fraction = roomOf(band, water, part, window)
return at + ticksUntil(whole, fraction, band.capacity, band)
end,
}
end)() end
if kind == 4 then algorithm = (function()
local unknown = -1
local function countsAt(band, now, window, count, at, before)
if not window then return windowOf(now, band), 0, unknown end
local open = windowAt(window, at, now, band)
if now < at or windowOf(window, band) >= open then return open, count, before end
return open, 0, unknown
end
return {
stamp = 3,
format = '<I4I7I5I7i5',
isWindow = true,
step = function(band, permits, now, maxWaitTicks, written, counted, at, previous)
local open, count, before = countsAt(band, now, written, counted, at, previous)
local fits = count + permits <= band.capacity
local granted = (fits or permits == 0) and open or windowAfter(open, band)
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
return retryAfter, delay, remaining, windowAfter(window, band), changes, window, after, now, before
end,
refund = function(band, permits, now, grantedAt, written, counted, at, previous)
local open, count, before = countsAt(band, now, written, counted, at, previous)
count = count > permits and count - permits or 0
local applies = windowOf(grantedAt, band) == open
if count == 0 and before >= 0 and open > windowOf(now, band) then
return applies, windowBefore(open, band), before, now, unknown
end
return applies, open, count, now, before
end,
force = function(band, permits, now, written, counted, at, previous)
local open, count, before = countsAt(band, now, written, counted, at, previous)
return open, count + forcedPermits(band, permits, band.capacity - count), now, before
end,
expiresAt = function(band, window, count)
window = windowOf(window, band)
return count > 0 and windowAfter(window, band) or window
end,
}
end)() end
if kind == 5 then algorithm = (function()
local pageEntries, maxSmallEntries = 64, 16
local function withEntries(log)
local pages = {}
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
local number = floor((slot - 1) / pageEntries)
pages[number] = pages[number] or longLogs.page(log, number, pageEntries)
return longLogs.entryAt(pages[number], slot - number * pageEntries)
end
return log
end
local function newLog()
return withEntries({ seenAt = 0, shift = 0, base = 0, head = 0, size = 0, written = {} })
end
local function openLog(record, holder)
if record.long then
record.long.holder = holder
return withEntries(record.long)
end
local log, at, total = newLog(), smallLogBytes + 1, 0
local _
_, log.size, log.seenAt = unpackNumbers('<I4BI7', record.bytes)
for index = 1, log.size do
local instant, permits
instant, permits, at = unpackNumbers('<i7I3', record.bytes, at)
total = total + permits
log.write(index, instant, total)
end
return log
end
local function logRecord(log, band)
if log.size > (log.offset and maxSmallEntries / 2 or maxSmallEntries) then
log.tag = band.tag + LONG
return log
end
local parts, before = { pack('<I4BI7', band.tag, log.size, log.seenAt) }, log.base
for index = 1, log.size do
local instant, total = log.read(index)
parts[index + 1] = pack('<i7I3', instant + log.shift, total - before)
before = total
end
return table.concat(parts)
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
record = logRecord,
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
force = function(band, permits, now, log)
local shift = log and shiftOf(log, now) or 0
local counted = log and grantedAfter(log, now - shift - band.window) or 0
local at = log and log.size > 0 and max(now, timeAt(log, log.size) + shift) or now
return now, shift, now - band.window, at, forcedPermits(band, permits, band.capacity - counted)
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
format = '<I4I7I5I5I7',
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
force = function(band, permits, now, written, before, counted, writtenAt)
local window, previous, current = countsAt(band, now, written, before, counted, writtenAt)
local total = current + weight(window, previous, band, max(now, window))
return window, previous, current + forcedPermits(band, permits, band.capacity - total), now
end,
expiresAt = function(band, window, previous, current)
local windows = current > 0 and 2 or previous > 0 and 1 or 0
return windowOf(window, band) + windows * band.window
end,
}
end)() end
if kind == 7 then algorithm = (function()
local function openHolds(record)
local _, count, total, seenAt = unpackNumbers('<I4I2I4I7', record.bytes)
local last = holdsBytes + holdBytes * count
return {
total = total,
seenAt = seenAt,
bytes = string.sub(record.bytes, holdsBytes + 1, last),
waiting = string.sub(record.bytes, last + 1),
}
end
local function holdsRecord(list, band)
local waiting = list.waiting or ''
return pack('<I4I2I4I7I2', band.tag, #list.bytes / holdBytes, list.total, list.seenAt, #waiting / holdBytes)
.. list.bytes .. waiting
end
local function holdsExpireAt(list, lastHoldAt)
return (list.waiting or '') == '' and lastHoldAt or max(lastHoldAt, now + waitingTicks)
end
local entryBytes = 17
local function entryAt(list, index)
local expiresAt, permits = unpackNumbers('<i7I2', list.bytes, entryBytes * index - 8)
return expiresAt, permits
end
local function shiftOf(list, now)
return now < list.seenAt and now - list.seenAt or 0
end
local function expiredIn(list, now)
local count, permits, size = 0, 0, #list.bytes / entryBytes
while count < size do
local expiresAt, own = entryAt(list, count + 1)
if expiresAt > now then break end
count, permits = count + 1, permits + own
end
return count, permits
end
local function expiryOf(list, from, missing)
local size = #list.bytes / entryBytes
for index = from, size do
local expiresAt, permits = entryAt(list, index)
missing = missing - permits
if missing <= 0 or index == size then return expiresAt end
end
return list.aheadUntil
end
local function insert(list, id, expiresAt, permits)
local index = #list.bytes / entryBytes
while index > 0 and entryAt(list, index) > expiresAt do index = index - 1 end
local at = entryBytes * index
list.bytes = string.sub(list.bytes, 1, at) .. id .. pack('<i7I2', expiresAt, permits) .. string.sub(list.bytes, at + 1)
list.total = list.total + permits
end
local function moveBy(list, shift)
if shift == 0 then return end
local parts = {}
for index = 1, #list.bytes / entryBytes do
local expiresAt, permits = entryAt(list, index)
local first = entryBytes * (index - 1)
parts[index] = string.sub(list.bytes, first + 1, first + 8) .. pack('<i7I2', expiresAt + shift, permits)
end
list.bytes = table.concat(parts)
end
local function take(list, id, now)
local shift = shiftOf(list, now)
if shift ~= 0 then
moveBy(list, shift)
list.seenAt, list.isMoved = now, true
end
local at = string.find(list.bytes, id, 1, true)
while at and at % entryBytes ~= 1 do at = string.find(list.bytes, id, at + 1, true) end
if not at then return nil end
local expiresAt, permits = entryAt(list, (at - 1) / entryBytes + 1)
if expiresAt <= now then return nil end
list.bytes = string.sub(list.bytes, 1, at - 1) .. string.sub(list.bytes, at + entryBytes)
list.total, list.seenAt = list.total - permits, now
return permits
end
return {
open = openHolds,
record = holdsRecord,
takesHolds = true,
step = function(band, permits, now, _, list)
local shift, expired, used, last = 0, 0, 0, now
if list then
shift = shiftOf(list, now)
local expiredPermits
expired, expiredPermits = expiredIn(list, now - shift)
used = list.total - expiredPermits + (list.ahead or 0)
local size = #list.bytes / entryBytes
if size > expired then last = entryAt(list, size) + shift end
end
local free, wait = band.capacity - used, 0
if permits > band.capacity then wait = never
elseif permits > free and permits > 0 then wait = expiryOf(list, expired + 1, permits - free) + shift - now end
local retryAfter, _, charged = answer(wait, permits, 0)
local remaining, expiresAt = charged and free - permits or free, now + band.window
if charged and expiresAt > last then last = expiresAt end
return retryAfter, 0, remaining > 0 and remaining or 0, last, charged or shift ~= 0,
now, shift, expired, expiresAt, charged and permits or 0
end,
refund = function(_, _, _, _, list)
return false, list
end,
apply = function(list, seenAt, shift, expired, expiresAt, permits, id)
list = list or { seenAt = 0, total = 0, bytes = '' }
for index = 1, expired do
local _, own = entryAt(list, index)
list.total = list.total - own
end
list.bytes = string.sub(list.bytes, entryBytes * expired + 1)
moveBy(list, shift)
list.seenAt = seenAt
if permits > 0 then insert(list, id or string.rep(string.char(0), 8), expiresAt, permits) end
return list
end,
release = function(list, id, now)
return take(list, id, now) ~= nil
end,
renew = function(list, id, now, band)
local permits = take(list, id, now)
if permits then insert(list, id, now + band.window, permits) end
return permits ~= nil
end,
expiresAt = function(_, list)
local size = #list.bytes / entryBytes
return holdsExpireAt(list, size == 0 and 0 or (entryAt(list, size)))
end,
}
end)() end
if isCalendar then
algorithm = (function()
local function windowOf(tick, band)
local starts = band.window
for i = #starts, 1, -1 do
if starts[i] <= tick then return starts[i] end
end
return 0
end
local function windowAfter(start, band)
local starts = band.window
for i = 1, #starts do
if starts[i] > start then return starts[i] end
end
end
local function windowBefore(start, band)
return windowOf(start - 1, band)
end
local function windowAt(written, writtenAt, now, band)
local current = windowOf(now, band)
written = windowOf(written, band)
if now >= writtenAt then return current > written and current or written end
local from = windowOf(writtenAt, band)
while from < written do from, current = windowAfter(from, band), windowAfter(current, band) end
return current
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
format = '<I4I7I5I7i5',
isWindow = true,
step = function(band, permits, now, maxWaitTicks, written, counted, at, previous)
local open, count, before = countsAt(band, now, written, counted, at, previous)
local fits = count + permits <= band.capacity
local granted = (fits or permits == 0) and open or windowAfter(open, band)
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
return retryAfter, delay, remaining, windowAfter(window, band), changes, window, after, now, before
end,
refund = function(band, permits, now, grantedAt, written, counted, at, previous)
local open, count, before = countsAt(band, now, written, counted, at, previous)
count = count > permits and count - permits or 0
local applies = windowOf(grantedAt, band) == open
if count == 0 and before >= 0 and open > windowOf(now, band) then
return applies, windowBefore(open, band), before, now, unknown
end
return applies, open, count, now, before
end,
force = function(band, permits, now, written, counted, at, previous)
local open, count, before = countsAt(band, now, written, counted, at, previous)
return open, count + forcedPermits(band, permits, band.capacity - count), now, before
end,
expiresAt = function(band, window, count)
window = windowOf(window, band)
return count > 0 and windowAfter(window, band) or window
end,
}
end)()
end
algorithms[isCalendar and 'calendar' or kind] = algorithm
end
return {
tag = tag,
kind = kind,
id = floor(tag / 256),
capacity = capacity,
definition = definition,
definitionTerms = definitionTerms,
suffix = suffix,
tokens = tokens,
window = window,
isCalendar = isCalendar,
algorithm = algorithm,
format = algorithm.format,
}
end
local function bandAt(number)
local band, terms = bands[number], 4 * number
if not band then
band = newBand(numbers[terms + 1], numbers[terms + 2], numbers[terms + 3], numbers[terms + 4])
bands[number] = band
end
return band
end
local function packCell(band, first, second, third, fourth)
local fits = band.algorithm.fits
if not fits or fits(first, second, third, fourth) then return pack(band.format, band.tag, first, second, third, fourth) end
return pack('<I4dddd', band.tag + WIDE, first, second, third, fourth)
end
local function expiryMs(expiresAt)
return ceil((expiresAt - expiryBase) / 1000) + expiryMargin
end
local function setValue(name, value, expiry)
call('SET', name, value, expiryOption, format('%d', expiry))
end
local operations
local function loadOperations()
if not operations then
operations = (function()
local CHARGE, PEEK, REFUND, LEASE, SETTLE, RESET, BACKDATE = 1, 2, 3, 4, 5, 6, 8
local QUEUE, ACQUIRE, RELEASE, RENEW = 20, 21, 22, 23
local FORCE, PARTIAL = 24, 25
local RESERVE, END = 26, 27
local notABucket = 'holds something that is not a bucket'
local HELD, SCALED, RESERVED = 16, 64, 128
local LOG, HOLDS, kindCount = 5, 7, 7
local wideBytes, lotsBytes = 36, 32
local smallEntryBytes, longLogBytes = 10, 41
local definitionBytes = 20
local maxRecords = 24
local firstBytes = 2048
local loaded, changedKeys = {}, {}
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
return { capacity = band.capacity - heldIn(lots), tokens = band.tokens, window = band.window, algorithm = band.algorithm }
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
freeBand = freeBand,
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
local function loadLongLogs()
if not longLogs then
longLogs = (function()
local recordFormat, entryFormat, entryBytes = '<I4I7i7I7I4I4I4I4', '<i7I7', 14
local maxForeignTicks = 60000000
local leastCapacity = 64
local function packLog(log)
return pack(recordFormat, log.tag, log.seenAt, log.shift, log.base, log.head, log.size, log.offset, log.capacity)
.. (log.definition or '')
end
local function changedSlots(log)
local slots = {}
for slot in pairs(log.written) do
if slot > log.head and slot <= log.head + log.size then slots[#slots + 1] = slot end
end
table.sort(slots)
return slots
end
local function bytesOf(holder, from, count)
if holder.isWhole then return string.sub(holder.value, from + 1, from + count) end
return call('GETRANGE', holder.name, from, from + count - 1)
end
local function entriesOf(log)
local stored = log.offset and bytesOf(log.holder, log.offset + log.head * entryBytes, log.size * entryBytes) or ''
local parts, at = {}, 1
for _, slot in ipairs(changedSlots(log)) do
local start = (slot - log.head - 1) * entryBytes + 1
parts[#parts + 1] = string.sub(stored, at, start - 1)
parts[#parts + 1] = pack(entryFormat, log.written[slot][1], log.written[slot][2])
at = start + entryBytes
end
parts[#parts + 1] = string.sub(stored, at)
return table.concat(parts)
end
local function writeEntries(log, name)
local slots, first = changedSlots(log), 1
while first <= #slots do
local last, entries = first, {}
repeat
local entry = log.written[slots[last]]
entries[#entries + 1] = pack(entryFormat, entry[1], entry[2])
last = last + 1
until slots[last] ~= slots[last - 1] + 1
call('SETRANGE', name, log.offset + (slots[first] - 1) * entryBytes, table.concat(entries))
first = last
end
end
local function hasRoom(log)
return log.offset and not log.isMoved and (log.capacity == 0 or log.head + log.size <= log.capacity)
and not (log.head > leastCapacity and log.head > log.size)
end
local function packHead(parts)
local head = {}
for i, part in ipairs(parts) do head[i] = type(part) == 'table' and packLog(part) or part end
return table.concat(head)
end
local function rewrite(holder, parts, headBytes, expiry)
local entries, offset, last = {}, headBytes, nil
for _, log in ipairs(parts) do
if type(log) == 'table' then
if last then
last.capacity = max(leastCapacity, 2 * last.size)
entries[#entries + 1] = rep(string.char(0), (last.capacity - last.size) * entryBytes)
offset = last.offset + last.capacity * entryBytes
end
entries[#entries + 1] = entriesOf(log)
log.offset, log.head, log.capacity, last = offset, 0, 0, log
end
end
setValue(holder.name, packHead(parts) .. table.concat(entries), expiry)
end
return {
read = function(bytes)
local log = { written = {} }
log.tag, log.seenAt, log.shift, log.base, log.head, log.size, log.offset, log.capacity =
unpackNumbers(recordFormat, bytes)
return log
end,
page = function(log, number, count)
return bytesOf(log.holder, log.offset + number * count * entryBytes, count * entryBytes)
end,
entryAt = function(page, index)
return unpackNumbers(entryFormat, page, (index - 1) * entryBytes + 1)
end,
isRecent = function(log)
return now - log.seenAt < maxForeignTicks
end,
write = function(holder, parts, expiry)
local headBytes, isInPlace = 0, true
for _, part in ipairs(parts) do
local isLog = type(part) == 'table'
headBytes = headBytes + (isLog and longLogBytes + #(part.definition or '') or #part)
isInPlace = isInPlace and (not isLog or hasRoom(part))
end
if not isInPlace or headBytes ~= holder.headBytes then return rewrite(holder, parts, headBytes, expiry) end
for _, part in ipairs(parts) do
if type(part) == 'table' then writeEntries(part, holder.name) end
end
call('SETRANGE', holder.name, 0, packHead(parts))
if expiryOption == 'PX' then call('PEXPIRE', holder.name, expiry) else call('PEXPIREAT', holder.name, expiry) end
end,
}
end)()
end
return longLogs
end
local reserved, loadReserved
local function recordSize(value, at, flags)
local kind = flags % 8
if flags == RESERVED then return at + 5 <= #value and 21 + 41 * unpackNumbers('<I2', value, at + 4) or nil end
if kind < 1 or kind > kindCount then return nil end
if flags == LOG then return smallLogBytes + smallEntryBytes * (string.byte(value, at + 4) or 0) end
if flags == LOG + LONG then return longLogBytes end
if flags == HOLDS then
if at + holdsBytes - 1 > #value then return nil end
local count, waiting = unpackNumbers('<I2', value, at + 4), unpackNumbers('<I2', value, at + 17)
return holdsBytes + holdBytes * (count + waiting)
end
if kind == LOG or kind == HOLDS or flags >= LONG then return nil end
return (flags % HELD >= WIDE and wideBytes or cellBytes) + (flags >= HELD and lotsBytes or 0)
end
local function recordsOf(value)
local records, at, last = {}, 1, #value
while at <= last do
local tag = last - at >= 4 and unpackNumbers('<I4', value, at) or 0
local definitionSize = tag % 128 >= SCALED and definitionBytes or 0
local flags = tag % 256 - (definitionSize > 0 and SCALED or 0)
local size = recordSize(value, at, flags)
if not size then return nil end
size = size + definitionSize
if at + size - 1 > last then return nil end
local record = { id = floor(tag / 256), kind = flags % 8, flags = flags, bytes = string.sub(value, at, at + size - 1) }
if definitionSize > 0 then record.definition = string.sub(record.bytes, -definitionBytes) end
if flags == LOG + LONG then
record.long = loadLongLogs().read(record.bytes)
record.long.definition = record.definition
if record.long.offset < last then last = record.long.offset end
end
records[#records + 1] = record
at = at + size
end
return records, at - 1
end
local function readValue(key)
if key <= cellKeys then return values[key] or '', true end
local value = redis.pcall('GETRANGE', KEYS[key], 0, firstBytes - 1)
if type(value) == 'table' then return '', true, notABucket end
return value, #value < firstBytes
end
local function loadKey(key)
local value, isWhole, problem = readValue(key)
if key <= cellKeys then values[key] = '' end
local records, headBytes = recordsOf(value)
if not isWhole and (not records or headBytes == #value) then
value, isWhole = call('GET', KEYS[key]), true
records, headBytes = recordsOf(value)
end
local holder = {
name = KEYS[key],
value = value,
isWhole = isWhole,
problem = problem or not records and notABucket or nil,
records = records or {},
headBytes = headBytes,
buckets = {},
byId = {},
}
loaded[key] = holder
return holder
end
local function readLots(record)
local lots, at = {}, #record.bytes - lotsBytes + 1
if record.definition then at = at - definitionBytes end
lots.earlier, lots.heldEarlier, lots.later, lots.heldLater = unpackNumbers('<dddd', record.bytes, at)
return lots
end
local function dropEnded(bucket, band)
local lots = bucket.lots
bucket.first, bucket.second, bucket.third, bucket.fourth =
held.dropEnded(lots, band, now, bucket.first, bucket.second, bucket.third, bucket.fourth)
if held.heldIn(lots) == 0 then bucket.lots = nil end
end
local function readRecord(bucket, band, record, holder)
bucket.record, bucket.definition, bucket.isPristine = record, record.definition, true
if band.algorithm.open then
bucket.first = band.algorithm.open(record, holder)
return
end
local wide, _ = record.flags % HELD >= WIDE, nil
_, bucket.first, bucket.second, bucket.third, bucket.fourth =
unpackNumbers(wide and '<I4dddd' or band.format, record.bytes)
if record.flags < HELD then return end
bucket.lots = readLots(record)
loadHeld()
if not band.definition then dropEnded(bucket, band) end
end
local function updateReserved(bucket)
if not bucket.reserved then return end
if bucket.first then reserved.update(bucket) else bucket.reserved = nil end
end
local function openBucket(key, band)
local holder = loaded[key] or loadKey(key)
if holder.problem then return nil, holder.problem end
local bucket = holder.byId[band.id]
if not bucket then
bucket = { key = key }
holder.byId[band.id], holder.buckets[#holder.buckets + 1] = bucket, bucket
for _, record in ipairs(holder.records) do
if record.id == band.id then
record.isOwn = true
if record.flags == RESERVED then bucket.reserved, bucket.reservedRecord = loadReserved().open(record.bytes), record
elseif record.kind == band.kind then readRecord(bucket, band, record, holder) end
end
end
if not bucket.first and band.start then band.start(bucket) end
elseif bucket.band and bucket.band.kind ~= band.kind then
bucket.first, bucket.lots, bucket.original, bucket.reserved = nil, nil, nil, nil
end
local isNew = not bucket.band
bucket.band = band
if isNew and not band.definition then updateReserved(bucket) end
return bucket
end
local function willWrite(key)
local holder = loaded[key]
if holder.isChanged then return end
holder.isChanged = true
changedKeys[#changedKeys + 1] = key
end
local scale
local function loadScale()
if not scale then
scale = (function()
local maxShares, maxLogShares = 2 ^ 38, 2 ^ 23 - 1
local function greatestCommonDivisor(a, b)
while b > 0 do a, b = b, a % b end
return a
end
local function sharesFor(shares, capacity, largest, most)
local perPermit = shares / greatestCommonDivisor(shares, capacity)
if perPermit * capacity > most then perPermit = floor(most / capacity) end
if perPermit * largest > most then perPermit = max(1, floor(most / largest)) end
return capacity * perPermit
end
local function scaleUp(value, to, from)
local quotient, rest = mulDiv(to, value, from)
return rest > 0 and quotient + 1 or quotient
end
local function scaleLevel(whole, fraction, window, to, from)
local wholes, first = mulDiv(to, whole, from)
local gained, part = mulDiv(fraction, to, window)
first = first + gained
local rest = first % from
local scaled, second = mulDiv(rest, window, from)
scaled = scaled + ceil((second + part) / from)
wholes = wholes + floor(first / from)
if scaled >= window then return wholes + 1, scaled - window end
return wholes, scaled
end
local calendars = 2 ^ 47
local function scaledTick(tick, from, newWindow, now)
if tick >= now then return tick end
return now - (mulDiv(now - tick, newWindow, from.window))
end
local scales = {
[1] = function(from, shares, _, _, whole, fraction, at, window)
local part = fraction > 0 and 1 or 0
local used, usedFraction = scaleLevel(from.capacity - whole - part, part * window - fraction, window, shares, from.capacity)
local rest = usedFraction > 0 and 1 or 0
return shares - used - rest, rest * window - usedFraction, at, window
end,
[2] = function(from, shares, newWindow, now, whole, since, lastAt, lastPermits)
if from.window ~= newWindow then since = scaledTick(since, from, newWindow, now) end
if lastPermits ~= never then lastPermits = scaleUp(lastPermits, shares, from.capacity) end
return shares - scaleUp(from.capacity - whole, shares, from.capacity), since, lastAt, lastPermits
end,
[3] = function(from, shares, _, _, whole, fraction, at, window)
whole, fraction = scaleLevel(whole, fraction, from.window, shares, from.capacity)
return whole, fraction, at, window
end,
[4] = function(from, shares, newWindow, _, window, count, at, before)
count = scaleUp(count, shares, from.capacity)
if from.windows == newWindow then
return window, count, at, before < 0 and before or scaleUp(before, shares, from.capacity)
end
return max(window, at), count, at, -1
end,
[6] = function(from, shares, newWindow, now, window, previous, current, at)
local capacity = from.capacity
if from.windows == newWindow then
return window, scaleUp(previous, shares, capacity), scaleUp(current, shares, capacity), at
end
local counted = max(window, now)
local weight = scaleUp(previous, from.window - (counted - window), from.window)
return counted, 0, scaleUp(current + weight, shares, capacity), now
end,
}
local function scaleCells(from, shares, newWindow, first, second, third, fourth)
local countsWindows = from.kind == 4 or from.kind == 6
if not countsWindows or from.windows ~= newWindow then
local _
_, _, _, _, _, first, second, third, fourth = from.algorithm.step(from, 0, now, 0, first, second, third, fourth)
end
return scales[from.kind](from, shares, newWindow, now, first, second, third, fourth)
end
local convertLog
local function definitionOf(bytes)
local capacity, tokens, window, shares = unpackNumbers(definitionFormat, bytes)
return { capacity = capacity, tokens = tokens, window = window, shares = shares }
end
local function newDefinition(to, shares)
return { capacity = to.capacity, tokens = to.tokens, window = to.window, shares = shares }
end
local function inShares(band, perPermit)
if perPermit == 1 then return band end
band.inShares = band.inShares or {}
local scaled = band.inShares[perPermit]
if not scaled then
scaled = {}
for name, part in pairs(band) do scaled[name] = part end
scaled.capacity, scaled.tokens = band.capacity * perPermit, band.tokens * perPermit
band.inShares[perPermit] = scaled
end
return scaled
end
local function bandOf(band, definition)
local isCalendar, tokens = definition.window >= calendars, definition.tokens * (definition.shares / definition.capacity)
local from = newBand(band.kind, definition.shares, tokens, isCalendar and band.window or definition.window)
from.windows = definition.window
return from
end
local function keepOriginal(bucket)
bucket.original = {
bucket.first, bucket.second, bucket.third, bucket.fourth, bucket.lots, bucket.definition, bucket.band, bucket.isPristine,
bucket.reserved,
}
end
local function restore(bucket)
bucket.first, bucket.second, bucket.third, bucket.fourth, bucket.lots, bucket.definition, bucket.band, bucket.isPristine,
bucket.reserved = unpack(bucket.original, 1, 9)
bucket.original = nil
end
local function updateUnder(bucket, band)
local current = bucket.band
bucket.band = band
updateReserved(bucket)
bucket.band = current
end
local function isUnused(bucket, band)
return band.algorithm.expiresAt(band, bucket.first, bucket.second, bucket.third, bucket.fourth) <= now
end
local function convertLots(lots, shares, from)
return {
earlier = lots.earlier,
later = lots.later,
heldEarlier = scaleUp(lots.heldEarlier, shares, from.capacity),
heldLater = scaleUp(lots.heldLater, shares, from.capacity),
}
end
local function convert(bucket, from, to, shares)
if from.kind == LOG then
if not convertLog then
convertLog = (function()
local pageEntries, maxSmallEntries = 64, 16
local function withEntries(log)
local pages = {}
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
local number = floor((slot - 1) / pageEntries)
pages[number] = pages[number] or longLogs.page(log, number, pageEntries)
return longLogs.entryAt(pages[number], slot - number * pageEntries)
end
return log
end
local function newLog()
return withEntries({ seenAt = 0, shift = 0, base = 0, head = 0, size = 0, written = {} })
end
local function openLog(record, holder)
if record.long then
record.long.holder = holder
return withEntries(record.long)
end
local log, at, total = newLog(), smallLogBytes + 1, 0
local _
_, log.size, log.seenAt = unpackNumbers('<I4BI7', record.bytes)
for index = 1, log.size do
local instant, permits
instant, permits, at = unpackNumbers('<i7I3', record.bytes, at)
total = total + permits
log.write(index, instant, total)
end
return log
end
local function logRecord(log, band)
if log.size > (log.offset and maxSmallEntries / 2 or maxSmallEntries) then
log.tag = band.tag + LONG
return log
end
local parts, before = { pack('<I4BI7', band.tag, log.size, log.seenAt) }, log.base
for index = 1, log.size do
local instant, total = log.read(index)
parts[index + 1] = pack('<i7I3', instant + log.shift, total - before)
before = total
end
return table.concat(parts)
end
local pageFormat = '<' .. rep('i7I7', pageEntries)
local function add(entries, tick, permits)
local size = #entries
local total = (entries[size] or 0) + permits
if entries[size - 1] ~= tick then size = size + 2 end
entries[size - 1], entries[size] = tick, total
end
local function packEntries(entries)
local parts, width = {}, 2 * pageEntries
local last = #entries - #entries % width
for at = 1, last, width do parts[#parts + 1] = pack(pageFormat, unpack(entries, at, at + width - 1)) end
for at = last + 1, #entries, 2 do parts[#parts + 1] = pack('<i7I7', entries[at], entries[at + 1]) end
return table.concat(parts)
end
local function logOf(seenAt, entries)
local log = newLog()
log.seenAt, log.size = seenAt, #entries / 2
if log.size <= maxSmallEntries then
for index = 1, log.size do log.write(index, entries[2 * index - 1], entries[2 * index]) end
return log
end
loadLongLogs()
log.holder, log.offset, log.capacity, log.isMoved = { isWhole = true, value = packEntries(entries) }, 0, 0, true
return log
end
return function(log, from, shares, newWindow)
local hasSameWindow = from.windows == newWindow
if hasSameWindow and shares == from.capacity then return log end
local shift = not hasSameWindow and now < log.seenAt and now - log.seenAt or 0
local forgetUntil = hasSameWindow and -never or now - shift - from.window
local entries, before = {}, log.base
local _, total = nil, log.base
if log.size > 0 then _, total = log.read(log.size) end
for index = 1, log.size do
local tick, sum = log.read(index)
tick = tick + log.shift
if tick > forgetUntil then
local permits = scaleUp(total - before, shares, from.capacity) - scaleUp(total - sum, shares, from.capacity)
if not hasSameWindow then tick = scaledTick(tick + shift, from, newWindow, now) end
if permits > 0 then add(entries, tick, permits) end
end
before = sum
end
return logOf(hasSameWindow and log.seenAt or now, entries)
end
end)()
end
bucket.first = convertLog(bucket.first, from, shares, to.window)
return
end
local old = from
if bucket.lots then
local free = held.freeBand(bucket.lots, from)
local _
_, _, _, _, _, bucket.first, bucket.second, bucket.third, bucket.fourth =
from.algorithm.step(free, 0, now, 0, bucket.first, bucket.second, bucket.third, bucket.fourth)
bucket.lots = convertLots(bucket.lots, shares, from)
end
bucket.first, bucket.second, bucket.third, bucket.fourth =
scaleCells(old, shares, to.window, bucket.first, bucket.second, bucket.third, bucket.fourth)
end
local function open(bucket, band, converts)
if bucket.original then restore(bucket) end
local to, from = band.definition, bucket.definition
if type(from) == 'string' then from = definitionOf(from) end
bucket.definition = from
if not bucket.first or not from then
bucket.definition = newDefinition(to, to.capacity)
updateUnder(bucket, band)
return band, 1
end
local isSame = from.capacity == to.capacity and from.tokens == to.tokens and from.window == to.window
if isSame and from.shares == from.capacity then
if bucket.lots and bucket.isPristine then dropEnded(bucket, band) end
updateUnder(bucket, band)
return band, 1
end
local isOtherCalendar = from.window ~= to.window and max(from.window, to.window) >= calendars
if from.shares == 0 or to.capacity == 0 or isOtherCalendar then
if to.capacity == 0 or not converts then keepOriginal(bucket) else willWrite(bucket.key) end
bucket.first, bucket.lots, bucket.reserved, bucket.definition = nil, nil, nil, newDefinition(to, to.capacity)
return band, 1
end
local largest = max(band.capacity, band.tokens, to.tokens)
local shares = sharesFor(from.shares, to.capacity, largest, band.kind == LOG and maxLogShares or maxShares)
local perPermit = shares / to.capacity
local isConverted = isSame and shares == from.shares
local source = isConverted and inShares(band, perPermit) or bandOf(band, from)
if bucket.lots and bucket.isPristine then dropEnded(bucket, source) end
updateUnder(bucket, source)
if not bucket.lots and isUnused(bucket, source) then
if not converts then keepOriginal(bucket) end
bucket.first, bucket.reserved, bucket.definition = nil, nil, newDefinition(to, to.capacity)
return band, 1
end
if isConverted then return source, perPermit end
if not converts then keepOriginal(bucket) end
convert(bucket, source, to, shares)
if bucket.reserved and shares ~= from.shares then
bucket.reserved = reserved.scaled(bucket.reserved, shares, from.shares)
end
bucket.definition = newDefinition(to, shares)
if converts then willWrite(bucket.key) end
return inShares(band, perPermit), perPermit
end
return {
open = function(bucket, band, converts)
local opened, perPermit = open(bucket, band, converts)
bucket.band = opened
bucket.isPristine = nil
return opened, perPermit
end,
restore = restore,
pack = function(definition)
return pack(definitionFormat, definition.capacity, definition.tokens, definition.window, definition.shares)
end,
}
end)()
end
return scale
end
local function commit(bucket, first, second, third, fourth, fifth, holdId)
local band = bucket.band
if bucket.reserved then reserved.observe(bucket) end
willWrite(bucket.key)
bucket.original = nil
if band.algorithm.apply then bucket.first = band.algorithm.apply(bucket.first, first, second, third, fourth, fifth, holdId)
else bucket.first, bucket.second, bucket.third, bucket.fourth = first, second, third, fourth end
end
loadReserved = function()
if not reserved then
reserved = (function()
local headFormat, headBytes = '<I4I2I2I7I6', 21
local entryFormat, entryBytes, amountBytes = '<I6I7I7I1I6I6', 41, 12
local idBytes, farAway = 8, 2 ^ 54
local amountFormat = '<I6I6'
local function sizeOf(list)
return #list.bytes / entryBytes
end
local function amountAt(list, index)
local whole, fraction = unpackNumbers(amountFormat, list.bytes, entryBytes * index - amountBytes + 1)
return whole, fraction
end
local function isMore(whole, fraction, than, part)
return whole > than or whole == than and fraction > part
end
local function amountsOf(list)
local wholes, fractions = {}, {}
local least, part = farAway, 0
for index = sizeOf(list), 1, -1 do
local whole, fraction = amountAt(list, index)
if isMore(least, part, whole, fraction) then least, part = whole, fraction end
wholes[index], fractions[index] = least, part
end
return wholes, fractions
end
local function withAmount(list, index, whole, fraction)
local at = entryBytes * (index - 1)
return string.sub(list.bytes, at + 1, at + entryBytes - amountBytes) .. pack(amountFormat, whole, fraction)
end
local function setAmount(list, index, whole, fraction)
local at = entryBytes * (index - 1)
list.bytes = string.sub(list.bytes, 1, at) .. withAmount(list, index, whole, fraction)
.. string.sub(list.bytes, at + entryBytes + 1)
end
local function minus(list, whole, fraction, lessWhole, lessFraction)
local left = fraction - lessFraction
if left < 0 then return whole - lessWhole - 1, left + list.window end
return whole - lessWhole, left
end
local function carry(list, band)
local wholes, fractions = amountsOf(list)
local parts = {}
for index = 1, #wholes do
parts[index] = withAmount(list, index, wholes[index], carriedFraction(fractions[index], list.window, band))
end
list.bytes, list.window = table.concat(parts), band.window
end
local function entryAt(list, index)
local permits, takenAt, endsAt, refunded, whole, fraction =
unpackNumbers(entryFormat, list.bytes, entryBytes * (index - 1) + idBytes + 1)
return permits, takenAt, endsAt, refunded, whole, fraction
end
local function removeAt(list, index)
local _, _, _, refunded = entryAt(list, index)
list.refunded = list.refunded - refunded
list.bytes = string.sub(list.bytes, 1, entryBytes * (index - 1)) .. string.sub(list.bytes, entryBytes * index + 1)
end
local function cut(list, first, last)
for index = first, list.refunded > 0 and last or 0 do
local _, _, _, refunded = entryAt(list, index)
list.refunded = list.refunded - refunded
end
list.bytes = string.sub(list.bytes, 1, entryBytes * (first - 1)) .. string.sub(list.bytes, entryBytes * last + 1)
end
local function lower(list, last, whole, fraction)
if last == 0 then return end
if whole == 0 and fraction == 0 then return cut(list, 1, last) end
local own, part = amountAt(list, last)
if isMore(own, part, whole, fraction) then setAmount(list, last, whole, fraction) end
end
local function find(list, id)
local found, at = nil, string.find(list.bytes, id, 1, true)
while at do
if at % entryBytes == 1 then found = (at - 1) / entryBytes + 1 end
at = string.find(list.bytes, id, at + 1, true)
end
return found
end
local function idAt(list, index)
return string.sub(list.bytes, entryBytes * (index - 1) + 1, entryBytes * (index - 1) + idBytes)
end
local function missingFrom(bucket)
local band = bucket.band
local terms = bucket.lots and held.freeBand(bucket.lots, band) or band
local _, _, _, _, _, whole, fraction =
band.algorithm.step(terms, 0, now, 0, bucket.first, bucket.second, bucket.third, bucket.fourth)
whole = terms.capacity - whole
if band.kind == TOKEN_BUCKET and fraction > 0 then return whole - 1, band.window - fraction end
return whole, 0
end
local function isRefilled(bucket)
return bucket.band.algorithm.isRefilled
end
local function observe(bucket)
local list = bucket.reserved
if not isRefilled(bucket) or #list.bytes == 0 then return end
if list.window ~= bucket.band.window then carry(list, bucket.band) end
lower(list, sizeOf(list), missingFrom(bucket))
local empty, size = 0, sizeOf(list)
while empty < size do
local whole, fraction = amountAt(list, empty + 1)
if whole > 0 or fraction > 0 then break end
empty = empty + 1
end
if empty > 0 then cut(list, 1, empty) end
end
local function returnable(permits, whole, fraction)
if whole < permits then return whole, fraction end
return permits, 0
end
local function subtract(list, index, whole, fraction)
local own, part = amountAt(list, index)
return minus(list, own, part, whole, fraction)
end
local function takeReturnable(list, index, permits)
local size = sizeOf(list)
local whole, fraction = amountAt(list, index)
for later = index + 1, size do
local own, part = amountAt(list, later)
if isMore(whole, fraction, own, part) then whole, fraction = own, part end
end
local returned, part = returnable(permits, whole, fraction)
if returned > 0 or part > 0 then
local parts, empty = { string.sub(list.bytes, 1, entryBytes * index) }, 0
for later = index + 1, size do
local left, rest = subtract(list, later, returned, part)
parts[#parts + 1] = withAmount(list, later, left, rest)
if left == 0 and rest == 0 then empty = later end
end
list.bytes = table.concat(parts)
if empty > 0 then
cut(list, 1, empty)
return returned, part
end
end
removeAt(list, index)
lower(list, index - 1, minus(list, whole, fraction, returned, part))
return returned, part
end
local function returnTo(bucket, whole, fraction, grantedAt)
local band = bucket.band
bucket.isPristine = nil
if whole == 0 and fraction == 0 then return willWrite(bucket.key) end
local terms = bucket.lots and held.freeBand(bucket.lots, band) or band
local applies, first, second, third, fourth, fifth =
band.algorithm.refund(terms, whole, now, grantedAt, bucket.first, bucket.second, bucket.third, bucket.fourth)
if fraction > 0 then
second = second + fraction
if second >= band.window then first, second = first + 1, second - band.window end
end
if applies then commit(bucket, first, second, third, fourth, fifth) else willWrite(bucket.key) end
end
local function giveBackAt(bucket, index, permits)
local list = bucket.reserved
if isRefilled(bucket) then
local whole, fraction = takeReturnable(list, index, permits)
return returnTo(bucket, whole, fraction, now)
end
local _, takenAt = entryAt(list, index)
removeAt(list, index)
returnTo(bucket, permits, 0, takenAt)
end
local function returnEnded(bucket)
local list, isRefilling = bucket.reserved, isRefilled(bucket)
local wholes, fractions = amountsOf(list)
local kept, refunded, ended = {}, 0, {}
local hasEnded = false
local returned, returnedPart = 0, 0
local last, lastPart
list.nextEnd = farAway
for index = 1, #wholes do
local permits, takenAt, endsAt, isRefunded = entryAt(list, index)
local whole, fraction = 0, 0
if isRefilling then whole, fraction = minus(list, wholes[index], fractions[index], returned, returnedPart) end
if endsAt > now then
list.nextEnd = math.min(list.nextEnd, endsAt)
last, lastPart = whole, fraction
refunded = refunded + isRefunded
kept[#kept + 1] = withAmount(list, index, whole, fraction)
else hasEnded = true end
if endsAt <= now and isRefilling then
local own, part = returnable(isRefunded * permits, whole, fraction)
whole, fraction = minus(list, whole, fraction, own, part)
returned, returnedPart = returned + own, returnedPart + part
if returnedPart >= list.window then returned, returnedPart = returned + 1, returnedPart - list.window end
if #kept > 0 and isMore(last, lastPart, whole, fraction) then
last, lastPart = whole, fraction
kept[#kept] = string.sub(kept[#kept], 1, entryBytes - amountBytes) .. pack(amountFormat, whole, fraction)
end
elseif endsAt <= now then ended[#ended + 1] = { permits = isRefunded * permits, takenAt = takenAt } end
if isRefilling and whole == 0 and fraction == 0 then kept, refunded = {}, 0 end
end
if not hasEnded then return end
list.bytes, list.refunded = table.concat(kept), refunded
if isRefilling then returnTo(bucket, returned, returnedPart, now) end
for _, entry in ipairs(ended) do returnTo(bucket, entry.permits, 0, entry.takenAt) end
end
return {
maxEntries = 10000,
size = sizeOf,
observe = observe,
open = function(bytes)
local list = {}
local _
_, _, list.refunded, list.nextEnd, list.window = unpackNumbers(headFormat, bytes)
list.bytes = string.sub(bytes, headBytes + 1)
return list
end,
record = function(list, band)
return pack(headFormat, band.id * 256 + RESERVED, sizeOf(list), list.refunded, list.nextEnd, list.window) .. list.bytes
end,
add = function(bucket, id, permits, expiresAt, isRefunded, keptTicks)
local band, list = bucket.band, bucket.reserved
local window = type(band.window) == 'number' and band.window or 0
if not list then
list = { refunded = 0, nextEnd = farAway, window = window, bytes = '' }
bucket.reserved = list
end
observe(bucket)
local whole, fraction, lostAt = 0, 0, farAway
if isRefilled(bucket) then whole, fraction = missingFrom(bucket)
elseif type(band.window) == 'number' then lostAt = now + 2 * band.window
else lostAt = now + 2 * (band.window[#band.window] - band.window[1]) end
local refunded = isRefunded and expiresAt < lostAt
local endsAt = refunded and expiresAt or math.min(lostAt, expiresAt + keptTicks)
list.bytes = list.bytes .. id .. pack(entryFormat, permits, now, endsAt, refunded and 1 or 0, whole, fraction)
list.refunded, list.nextEnd = list.refunded + (refunded and 1 or 0), math.min(list.nextEnd, endsAt)
willWrite(bucket.key)
end,
scaled = function(list, to, from)
local wholes, fractions = amountsOf(list)
local parts = {}
for index = 1, #wholes do
local permits, takenAt, endsAt, refunded = entryAt(list, index)
local whole, fraction = wholes[index], fractions[index]
local scaledWhole, rest = (mulDiv(to, whole, from)), 0
if fraction * to < exactLimit then rest = floor(fraction * to / from) end
local carried = list.window > 0 and floor(rest / list.window) or 0
parts[index] = idAt(list, index) .. pack(entryFormat, (mulDiv(to, permits, from)), takenAt, endsAt, refunded,
scaledWhole + carried, rest - carried * list.window)
end
return { refunded = list.refunded, nextEnd = list.nextEnd, window = list.window, bytes = table.concat(parts) }
end,
giveBack = function(bucket, id, permits)
local index = find(bucket.reserved, id)
if not index then return end
observe(bucket)
index = find(bucket.reserved, id)
if index then giveBackAt(bucket, index, permits) end
end,
update = function(bucket)
local list = bucket.reserved
observe(bucket)
if not isRefilled(bucket) then
local size = sizeOf(list)
local last = size
while last > 0 do
local _, takenAt = entryAt(list, last)
if takenAt <= now then break end
last = last - 1
end
if last < size then
cut(list, last + 1, size)
bucket.isPristine = nil
willWrite(bucket.key)
end
end
if now >= list.nextEnd then returnEnded(bucket) end
end,
}
end)()
end
return reserved
end
local function packState(bucket)
local band, lots, first, second, third, fourth =
bucket.band, bucket.lots, bucket.first, bucket.second, bucket.third, bucket.fourth
if band.algorithm.open then return band.algorithm.record(first, band) end
if not lots or held.heldIn(lots) == 0 then return packCell(band, first, second, third, fourth) end
return pack('<I4dddddddd', band.tag + WIDE + HELD, first, second, third, fourth,
lots.earlier, lots.heldEarlier, lots.later, lots.heldLater)
end
local function packBucket(bucket)
local record = packState(bucket)
if not bucket.band.definition then return record end
local definition = loadScale().pack(bucket.definition)
if type(record) == 'string' then return record .. definition end
record.definition = definition
return record
end
local function undoConversion(bucket)
if bucket.original then loadScale().restore(bucket) end
if not bucket.isPristine then return true end
bucket.record.isOwn = false
if bucket.reservedRecord then bucket.reservedRecord.isOwn = false end
return false
end
local function expiryOf(bucket)
local band, lots = bucket.band, bucket.lots
local expiresAt = band.algorithm.expiresAt(band, bucket.first, bucket.second, bucket.third, bucket.fourth)
return lots and max(expiresAt, held.refilledAt(lots, band)) or expiresAt
end
local function writeKey(holder)
local parts, expiresAt, hasLong = {}, 0, false
for _, bucket in ipairs(holder.buckets) do
local isKept = bucket.original and not undoConversion(bucket)
if bucket.first and not isKept then
parts[#parts + 1] = packBucket(bucket)
hasLong = hasLong or type(parts[#parts]) == 'table'
expiresAt = max(expiresAt, expiryOf(bucket))
local list = bucket.reserved
if list and reserved.size(list) > 0 then parts[#parts + 1] = reserved.record(list, bucket.band) end
end
end
if expiresAt + 1000 * expiryMargin <= now then parts, hasLong = {}, false end
local expiry, own = expiryMs(expiresAt), #parts
for _, record in ipairs(holder.records) do
if not record.isOwn and #parts < maxRecords and (not record.long or longLogs.isRecent(record.long)) then
if record.long then record.long.holder = holder end
parts[#parts + 1] = record.long or record.bytes
hasLong = hasLong or record.long ~= nil
end
end
if #parts == 0 then return call('DEL', holder.name) end
if #parts > own then
local left = call('PTTL', holder.name) + (expiryOption == 'PXAT' and ceil(now / 1000) or 0)
expiry = own == 0 and left or max(expiry, left)
end
if hasLong then loadLongLogs().write(holder, parts, expiry) else setValue(holder.name, table.concat(parts), expiry) end
end
local function writeChanged()
for _, key in ipairs(changedKeys) do writeKey(loaded[key]) end
end
local problems = {}
local applied, replacements
if found then
applied = (function()
local LIMIT, ALLOW = 1, 2
local nowMs, lastBand = now / 1000, bandCount
local keyNumbers = {}
if places[1] == 1 then
for i, name in ipairs(KEYS) do keyNumbers[name] = i end
end
local function keyNumberOf(name)
if not keyNumbers[name] then
KEYS[#KEYS + 1] = name
keyNumbers[name] = #KEYS
end
return keyNumbers[name]
end
local function applyBalance(band, balance, at)
local algorithm, spent = band.algorithm, band.capacity - balance
if spent <= 0 then return end
local function start(bucket)
local _, _, _, _, _, first, second, third, fourth, fifth = algorithm.step(band, spent, at, 0)
if algorithm.apply then bucket.first = algorithm.apply(nil, first, second, third, fourth, fifth)
else bucket.first, bucket.second, bucket.third, bucket.fourth = first, second, third, fourth end
end
local unused = {}
start(unused)
local endsAt = algorithm.expiresAt(band, unused.first, unused.second, unused.third, unused.fourth)
if endsAt <= now then return end
local startedAlgorithm = {}
for name, part in pairs(algorithm) do startedAlgorithm[name] = part end
startedAlgorithm.expiresAt = function(...) return max(endsAt, algorithm.expiresAt(...)) end
band.algorithm, band.start = startedAlgorithm, start
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
return bits % 8, capacity, tokens, window, at, bits >= 128
end
local limits = {}
local function limitOf(value, at, first, count)
local name = first .. ' ' .. value
if limits[name] then return limits[name] end
local flags, start = string.byte(value), at
local balance, balanceAt
if flags % 64 >= 32 then balance, balanceAt, at = unpackNumbers('<I4I6', value, at) end
local limit, firstId = { first = lastBand + 1, count = 0 }, bandAt(first).id
local function add(kind, capacity, tokens, window, definitionTerms)
local flags = definitionTerms and 64 or 0
local band = newBand((firstId + limit.count) % 2 ^ 24 * 256 + kind + flags, definitionTerms or capacity, tokens, window)
if balance then applyBalance(band, balance, math.min(now, balanceAt * 1000)) end
limit.count, lastBand = limit.count + 1, lastBand + 1
bands[lastBand] = band
end
local more = flags % 8 >= 4
for number = first, more and 0 or first + count - 1 do
local band = bandAt(number)
add(band.kind, band.capacity, band.tokens, band.window, band.definitionTerms)
end
while more do
local kind, capacity, tokens, window
kind, capacity, tokens, window, at, more = readBand(value, at)
if window == 0 then tokens, window = capacity, bandAt(first + math.min(tokens, count) - 1).window end
add(kind, capacity, tokens, window)
end
limit.suffix = '.' .. string.sub(redis.sha1hex(string.sub(value, start, at - 1)), 1, 10)
limits[name] = limit
return limit
end
local function denyingBand(expiresAt)
local retryAfter = expiresAt and ceil(expiresAt * 1000) - now or never
local resetAt = expiresAt and ceil(expiresAt * 1000) or now
return { hasNoBucket = true, algorithm = { step = function() return retryAfter, 0, 0, resetAt, false end } }
end
local function overrideAt(i)
for _, value in ipairs({ found[i] or '', ARGV[3 + lookups + i] or '' }) do
if value ~= '' then
local flags, at, expiresAt = string.byte(value), 2, nil
if flags % 16 >= 8 then expiresAt, at = unpackNumbers('<I6', value, 2) end
if not expiresAt or expiresAt > nowMs then return value, flags % 4, at, expiresAt end
end
end
end
local applied = {}
for i = 1, lookups do
local value, action, at, expiresAt = overrideAt(i)
if value then
applied[#applied + 1] = i - 1
applied[#applied + 1] = value
local number, item, first, count, key = unpack(places, 5 * i - 3, 5 * i + 1)
local replacement = { value = value, key = key, first = first, count = 0, rule = { key = key, first = first, count = count } }
if action == LIMIT then
local limit = limitOf(value, at, first, count)
replacement.key = keyNumberOf(KEYS[key] .. limit.suffix)
replacement.first, replacement.count = limit.first, limit.count
elseif action ~= ALLOW then
lastBand = lastBand + 1
bands[lastBand] = denyingBand(expiresAt)
replacement.first, replacement.count = lastBand, 1
end
replacements = replacements or {}
replacements[number] = replacements[number] or {}
replacements[number][item] = replacement
end
end
if applied[1] then return applied end
end)()
end
local bans
local banTerms = numbers[#numbers]
if type(banTerms) == 'table' then
bans = (function()
local fields = 8
local byDecision = {}
for at = 1, #banTerms, fields do
local number, item, key, after, within, duration, factor, longest = unpack(banTerms, at, at + fields - 1)
byDecision[number] = byDecision[number] or {}
byDecision[number][item] =
{ name = KEYS[key], after = after, within = within, duration = duration, factor = factor, longest = longest }
end
local states = {}
local function stateOf(ban)
local state = states[ban.name]
if state then return state end
state = { till = 0, level = 0 }
local value = redis.pcall('GET', ban.name)
if type(value) == 'string' and #value >= 16 and #value % 8 == 0 then
state.till, state.level = unpackNumbers('<dd', value)
for at = 17, #value, 8 do state[#state + 1] = unpackNumbers('<d', value, at) end
end
states[ban.name] = state
return state
end
local function untilOf(ban)
local till = stateOf(ban).till
if till <= now then return 0 end
return math.min(till, now + ban.longest)
end
local function write(ban, state)
local value = pack('<dd', state.till, state.level)
for _, tick in ipairs(state) do value = value .. pack('<d', tick) end
local expiresAt = max(state.till == 0 and 0 or state.till + ban.longest, (state[#state] or 0) + ban.within)
setValue(ban.name, value, expiryMs(expiresAt))
end
return {
ofDecision = function(number) return byDecision[number] end,
untilOf = untilOf,
reject = function(ban)
local before = stateOf(ban)
local state = { till = before.till, level = before.level }
for _, tick in ipairs(before) do
if tick > now - ban.within then state[#state + 1] = tick end
end
state[#state + 1] = now
if #state >= ban.after then
local level, ticks = now >= before.till + ban.longest and 0 or before.level, ban.duration
for _ = 1, level do
if ticks < ban.longest then ticks = ticks * ban.factor end
end
state = { till = now + floor(math.min(ticks, ban.longest)), level = level + 1 }
end
states[ban.name] = state
write(ban, state)
return untilOf(ban)
end,
reset = function(ban)
states[ban.name] = { till = 0, level = 0 }
call('DEL', ban.name)
end,
}
end)()
end
local buckets, bandsOf, permitsOf, maxWaitsOf, instants = {}, {}, {}, {}, {}
local sharesOf = {}
local oldFirsts, oldSeconds, oldThirds, oldFourths, movedFrom = {}, {}, {}, {}, {}
local shadows, ends, allowing, banned, started = {}, {}, {}, {}, {}
local retries, delays, remainders, resets, writes = {}, {}, {}, {}, {}
local nextFirsts, nextSeconds, nextThirds, nextFourths, nextFifths = {}, {}, {}, {}, {}
local function emit(number)
length = length + 1
results[length] = number
end
local function stepShares(i, permits, maxWaitTicks)
local band, lots = bandsOf[i], buckets[i].lots
if lots then
return held.step(lots, band, permits, now, maxWaitTicks, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i])
end
return band.algorithm.step(band, permits, now, maxWaitTicks, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i])
end
local function inPermits(i, retryAfter, delay, remaining, resetAt, changes, ...)
return retryAfter, delay, floor(remaining / sharesOf[i]), resetAt, changes and not buckets[i].original, ...
end
local function step(i, permits, maxWaitTicks)
local shares = sharesOf[i]
if shares == 1 and not buckets[i].original then return stepShares(i, permits, maxWaitTicks) end
return inPermits(i, stepShares(i, permits * shares, maxWaitTicks))
end
local function stepInto(i)
retries[i], delays[i], remainders[i], resets[i], writes[i],
nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i], nextFifths[i] = step(i, permitsOf[i], maxWaitsOf[i])
return retries[i] == 0
end
local function stampOf(i)
local algorithm = bandsOf[i].algorithm
if algorithm.open then return oldFirsts[i].seenAt end
return (select(algorithm.stamp, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i]))
end
local function moveBack(i, _, _, _, _, changes, first, second, third, fourth, fifth)
if not changes then return end
movedFrom[i] = stampOf(i)
commit(buckets[i], first, second, third, fourth, fifth)
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
local isUnknown = buckets[i].lots or algorithm.takesHolds or sharesOf[i] ~= 1 and not algorithm.unchangedUntil
or buckets[i].reserved and buckets[i].reserved.refunded > 0
local size = isUnknown and -1 or first and (movedFrom[i] or 4) or 0
local second = oldSeconds[i]
if first and algorithm.unchangedUntil then
first, second = algorithm.unchangedUntil(bandsOf[i], now, first), first.seenAt
end
results[length + 1], results[length + 2], results[length + 3] = size, size > 0 and first or 0, second or 0
results[length + 4], results[length + 5] = oldThirds[i] or 0, oldFourths[i] or 0
length = length + 5
end
local function emitBands(count, withStates)
for i = 1, count do
results[length + 1], results[length + 2] = retries[i] == never and -1 or retries[i], delays[i]
results[length + 3], results[length + 4] = remainders[i], resets[i]
length = length + 4
if withStates then emitState(i) end
end
end
local function emitAllowed(count)
for i = 1, count do
results[length + 1], results[length + 2] = remainders[i], resets[i]
length = length + 2
end
end
local chargedHolds = {}
local function banOf(item)
local ofItems = bans and bans.ofDecision(decision)
if not ofItems or shadows[item] ~= 0 then return nil end
local replaced = replacements and replacements[decision] and replacements[decision][item]
if replaced and (replaced.count == 0 or bandAt(replaced.first).hasNoBucket) then return nil end
return ofItems[item]
end
local function denyUntil(tick, first, last)
for i = first, last do
if retries[i] == 0 then
local _
_, delays[i], remainders[i], resets[i] = step(i, 0, 0)
end
retries[i], remainders[i] = max(retries[i], tick - now), 0
end
end
local function countRejections(items)
local i = 0
for item = 1, items do
local ban = not allowing[item] and banned[item] == 0 and banOf(item)
local tick = ban and bans.reject(ban) or 0
started[item] = tick
for j = i + 1, tick > 0 and ends[item] or 0 do
if retries[j] > 0 then retries[j] = max(retries[j], tick - now) end
end
i = ends[item]
end
end
local function emitBans(items)
for item = 1, items do
if banOf(item) then
emit(banned[item] > 0 and banned[item] or started[item])
emit(started[item] > 0 and 1 or 0)
end
end
end
local function chargeAll(items, peek)
local granted, isPlain, count = true, true, 0
for item = 1, items do
local allows = true
for i = count + 1, ends[item] do
allows = stepInto(i) and allows
isPlain = isPlain and delays[i] == 0
end
local ban = bans and banOf(item)
banned[item], started[item] = ban and bans.untilOf(ban) or 0, 0
if banned[item] > 0 then
allows = false
denyUntil(banned[item], count + 1, ends[item])
end
count = ends[item]
allowing[item] = allows
isPlain = isPlain and allows
if not allows and shadows[item] == 0 then granted = false end
end
local i = 0
for item = 1, items do
local charged = granted and allowing[item]
while i < ends[item] do
i = i + 1
if charged and not peek then
commit(buckets[i], nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i], nextFifths[i],
chargedHolds[i])
else skip(i, charged) end
end
end
if granted and isPlain then
emit(ALLOWED)
emitAllowed(count)
else
if bans and not granted and not peek then countRejections(items) end
emit(granted and GRANTED or DENIED)
emitBands(count, not granted)
if bans and not granted then emitBans(items) end
end
return granted
end
local function refundBand(i)
local band, bucket = bandsOf[i], buckets[i]
local first, second, third, fourth, fifth = bucket.first, bucket.second, bucket.third, bucket.fourth, nil
if not first then return end
local grantedAt, applies = (instants[i] or -1) < 0 and now or instants[i], nil
if bucket.lots then
applies, first, second, third, fourth =
held.refund(bucket.lots, band, permitsOf[i] * sharesOf[i], now, grantedAt, first, second, third, fourth)
else
applies, first, second, third, fourth, fifth =
band.algorithm.refund(band, permitsOf[i] * sharesOf[i], now, grantedAt, first, second, third, fourth)
end
if applies then commit(bucket, first, second, third, fourth, fifth) else moveBack(i, step(i, 0, 0)) end
end
local function refund(count)
for i = 1, count do refundBand(i) end
emit(GRANTED)
end
local function backdate(count)
for i = 1, count do
local band, instant = bandsOf[i], instants[i]
local isKnown = not band.isCalendar or instant >= band.window[1]
local isStored = oldFirsts[i] and not buckets[i].lots and not buckets[i].original
if isStored and instant >= 0 and isKnown and stampOf(i) == permitsOf[i] then
moveBack(i, band.algorithm.step(band, 0, instant, 0, oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i]))
end
end
emit(GRANTED)
end
local function resetItem(key, first, count)
local holder = loaded[key] or loadKey(key)
holder.problem = nil
for number = first, first + count - 1 do
local band = bandAt(number)
local bucket = not band.hasNoBucket and openBucket(key, band)
if bucket then bucket.first, bucket.lots, bucket.original, bucket.reserved = nil, nil, nil, nil end
end
willWrite(key)
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
commit(buckets[i], nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i])
if not bandsOf[i].algorithm.isWindow then buckets[i].lots = held.hold(buckets[i].lots, amount * sharesOf[i], endsAt) end
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
local bucket, band, permits, endsAt = buckets[i], bandsOf[i], permitsOf[i] * sharesOf[i], instants[i]
local first, second, third, fourth = bucket.first, bucket.second, bucket.third, bucket.fourth
if bucket.lots then
commit(bucket, held.release(bucket.lots, band, permits, endsAt, now, first, second, third, fourth))
elseif first and permits < 0 and band.algorithm.isWindow then
local applies
applies, first, second, third, fourth = band.algorithm.refund(band, -permits, now, endsAt - 1, first, second, third, fourth)
if applies then commit(bucket, first, second, third, fourth) end
end
end
emit(GRANTED)
end
local holdIds = {}
local function readHoldId(first, last)
local high, low = numbers[position + 1], numbers[position + 2]
position = position + 2
local id = high >= 0 and pack('<I4I4', high, low) or nil
for i = first, last do holdIds[i] = id end
end
local function holdOf(i)
local algorithm = bandsOf[i].algorithm
return algorithm.takesHolds and holdIds[i] and buckets[i].first and algorithm
end
local function changeHold(i, action)
local algorithm, list = holdOf(i), buckets[i].first
if not algorithm then return 0 end
local isFound = algorithm[action](list, holdIds[i], now, bandsOf[i])
if isFound or list.isMoved then willWrite(buckets[i].key) end
return isFound and 1 or 0
end
local function renew(count)
local missing, holds = 0, 0
for i = 1, count do
if bandsOf[i].algorithm.takesHolds then
holds = holds + 1
missing = missing + 1 - changeHold(i, 'renew')
end
end
emit(GRANTED)
emit(holds == 0 and 1 or missing)
end
local function splitQueue(list, id)
local before, after, ahead, ownUntil = {}, {}, 0, nil
for at = 1, #list.waiting, holdBytes do
local entry = string.sub(list.waiting, at, at + holdBytes - 1)
local goneAt, permits = unpackNumbers('<i7I2', entry, 9)
if goneAt > now and goneAt <= now + waitingTicks then
if string.sub(entry, 1, 8) == id then ownUntil = goneAt
elseif ownUntil then after[#after + 1] = entry
else
before[#before + 1] = entry
ahead = ahead + permits
end
end
end
return table.concat(before), ahead, table.concat(after), ownUntil
end
local function queueOf(i)
local list = bandsOf[i].algorithm.takesHolds and buckets[i].first
return list and (list.waiting or '') ~= '' and list or nil
end
local function reserveForQueue(count)
for i = 1, count do
local list = queueOf(i)
if list then
local _, ahead = splitQueue(list, holdIds[i])
list.ahead, list.aheadUntil = ahead, now + waitingTicks
end
end
end
local function leaveQueue(i)
local list = queueOf(i)
local before, _, after, ownUntil
if list then before, _, after, ownUntil = splitQueue(list, holdIds[i]) end
if not ownUntil then return end
list.waiting = before .. after
willWrite(buckets[i].key)
end
local function joinQueue(i)
local list = bandsOf[i].algorithm.takesHolds and holdIds[i] and buckets[i].first
if not list then return end
list.waiting = list.waiting or ''
local before, _, after, ownUntil = splitQueue(list, holdIds[i])
if ownUntil and ownUntil > now + waitingTicks / 2 then return end
list.waiting = before .. holdIds[i] .. pack('<i7I2', now + waitingTicks, permitsOf[i]) .. after
willWrite(buckets[i].key)
end
local function endsWithRelease(items)
local i = 0
for item = 1, items do
while i < ends[item] do
i = i + 1
local isFree = retries[i] == 0 or shadows[item] ~= 0
if not isFree and (maxWaitsOf[i] == 0 or retries[i] == never or not bandsOf[i].algorithm.takesHolds) then return false end
end
end
return true
end
local function acquire(items, count, waits)
chargedHolds = holdIds
reserveForQueue(count)
local isWaiting = not chargeAll(items, false) and waits and endsWithRelease(items)
local i = 0
for item = 1, items do
while i < ends[item] do
i = i + 1
local list = bandsOf[i].algorithm.takesHolds and buckets[i].first
if list then list.ahead = nil end
if isWaiting and shadows[item] == 0 then joinQueue(i) elseif waits then leaveQueue(i) end
end
end
end
local function release(count)
local released = 0
for i = 1, count do
if not bandsOf[i].hasNoBucket then
if bandsOf[i].algorithm.takesHolds then
released = released + changeHold(i, 'release')
leaveQueue(i)
elseif permitsOf[i] > 0 then refundBand(i) end
end
end
emit(GRANTED)
emit(released)
end
local function forceBand(i, permits)
local band, bucket = bandsOf[i], buckets[i]
permits = permits * sharesOf[i]
local terms = bucket.lots and held.freeBand(bucket.lots, band) or band
commit(bucket, band.algorithm.force(terms, permits, now, bucket.first, bucket.second, bucket.third, bucket.fourth))
oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i] = bucket.first, bucket.second, bucket.third, bucket.fourth
end
local function readBack(i)
retries[i], delays[i], remainders[i], resets[i] = step(i, 0, 0)
end
local function force(count)
for i = 1, count do
if not bandsOf[i].hasNoBucket and not buckets[i].original then forceBand(i, permitsOf[i]) end
readBack(i)
end
emit(GRANTED)
emitBands(count)
end
local function takePart(count, unit)
local amount = count > 0 and permitsOf[1] or 0
for i = 1, count do
local _, _, remaining = step(i, 0, 0)
if remaining < amount then amount = remaining end
end
amount = max(unit, floor(amount / unit) * unit)
local granted = true
for i = 1, count do
permitsOf[i] = amount
granted = stepInto(i) and granted
end
for i = 1, count do
if not granted then skip(i, false)
else commit(buckets[i], nextFirsts[i], nextSeconds[i], nextThirds[i], nextFourths[i], nextFifths[i]) end
end
emit(granted and GRANTED or DENIED)
emitBands(count)
emit(amount)
end
local function uncoveredTick(band, window, at)
local starts, latest = band.window, max(now, window or 0, at or 0)
if now < starts[1] then return now end
if latest >= starts[#starts - 1] then return latest end
end
local function prepare(i, permits, maxWaitTicks, key, band, converts)
local bucket, problem = {}, nil
sharesOf[i] = 1
if not band.hasNoBucket then bucket, problem = openBucket(key, band) end
if bucket and band.definition then band, sharesOf[i] = loadScale().open(bucket, band, converts) end
buckets[i], bandsOf[i], permitsOf[i], maxWaitsOf[i], movedFrom[i] = bucket, band, permits, maxWaitTicks, nil
if problem then return KEYS[key] .. ' ' .. problem end
oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i] = bucket.first, bucket.second, bucket.third, bucket.fourth
local tick = band.isCalendar and uncoveredTick(band, bucket.first, bucket.third)
if tick then return format('PERIOD %d', tick) end
end
local function replacementOf(item)
local replaced = replacements and replacements[decision]
return replaced and replaced[item]
end
local function openItem(item, permits, maxWaitTicks, key, first, count, from, converts)
local replacement, problem = replacementOf(item), nil
if replacement then key, first, count = replacement.key, replacement.first, replacement.count end
for j = 0, count - 1 do
problem = prepare(from + j + 1, permits, maxWaitTicks, key, bandAt(first + j), converts) or problem
end
ends[item] = from + count
return from + count, problem
end
local function fail(problem)
emit(FAILED)
problems[#problems + 1] = problem
end
local function chargeRun(offset, items, key, listed)
local count, problem, itemProblem = 0, nil, nil
for item = 1, items do
local terms, number = offset + 4 * item, listed and numbers[listed + item] or key + item - 1
shadows[item] = 0
count, itemProblem = openItem(item, numbers[terms - 3], numbers[terms - 2], number, numbers[terms - 1],
numbers[terms], count, true)
problem = itemProblem or problem
end
if problem then fail(problem) else chargeAll(items, false) end
end
local function readItems(operation)
local hasInstants = operation == REFUND or operation == SETTLE or operation == BACKDATE or operation == RELEASE
local hasHolds = operation >= QUEUE and operation <= RENEW
local items, count, problem, itemProblem = numbers[position + 2], 0, nil, nil
local keeps = operation == PEEK or operation == RENEW or operation == BACKDATE
position = position + 2
for item = 1, items do
local before, bandsHere, permits = count, numbers[position + 6], numbers[position + 1]
local converts = not keeps and (operation ~= RELEASE or permits > 0)
shadows[item] = numbers[position + 3]
count, itemProblem = openItem(item, permits, numbers[position + 2], numbers[position + 4], numbers[position + 5],
bandsHere, count, converts)
problem = itemProblem or problem
position = position + 6
if hasInstants then
for j = 1, count - before do instants[before + j] = j <= bandsHere and numbers[position + j] or -1 end
position = position + bandsHere
end
if hasHolds then readHoldId(before + 1, count) end
end
return items, count, problem
end
local function reset()
local items = numbers[position + 2]
position = position + 2
for item = 1, items do
local replacement = replacementOf(item)
if replacement then resetItem(replacement.key, replacement.first, replacement.count) end
resetItem(numbers[position + 4], numbers[position + 5], numbers[position + 6])
local ofItems = bans and bans.ofDecision(decision)
if ofItems and ofItems[item] then bans.reset(ofItems[item]) end
position = position + 6
end
emit(GRANTED)
end
local reservations
local function decide(operation)
if operation == RESET then return reset() end
if operation >= RESERVE then
if not reservations then
reservations = (function()
local recordFormat, recordBytes = '<dI1I1I4I4I4I4', 26
local ABORT = 2
local expiredTicks = 60000000
local function packResults(from)
local packed = { pack('<d', now) }
for i = from + 1, length do packed[#packed + 1] = pack('<d', results[i]) end
return table.concat(packed)
end
local function packRecord(record)
return pack(recordFormat, record.expiresAt, record.status, record.refunded, #record.text, #record.made, #record.overrides,
#record.ended) .. record.text .. record.made .. record.overrides .. record.ended
end
local function readRecord(value)
local record = {}
local textBytes, madeBytes, overrideBytes
record.expiresAt, record.status, record.refunded, textBytes, madeBytes, overrideBytes = unpackNumbers(recordFormat, value)
local at = recordBytes + textBytes
record.text, record.made = string.sub(value, recordBytes + 1, at), string.sub(value, at + 1, at + madeBytes)
record.overrides = string.sub(value, at + madeBytes + 1, at + madeBytes + overrideBytes)
return record
end
local function findRecord(name)
local value = redis.pcall('GET', name)
if not value then return nil end
if type(value) == 'table' or #value < recordBytes then return nil, name .. ' holds something that is not a reservation' end
return now < unpackNumbers('<d', value) + expiredTicks and value or nil
end
local function failWith(problem)
fail('RESERVATION ' .. problem)
end
local function packOverrides(items)
local parts = {}
for item = 1, items do
local replacement = replacementOf(item)
if replacement then parts[#parts + 1] = pack('<I2I4', item, #replacement.value) .. replacement.value end
end
return table.concat(parts)
end
local function isFull(count)
for i = 1, count do
local list = buckets[i].reserved
if list and reserved.size(list) >= reserved.maxEntries then return true end
end
return false
end
local function reserve(items, count, name, id, ttl, refunded, text)
local known, problem = findRecord(name)
if problem then return fail(problem) end
if known then return failWith('KNOWN ' .. known) end
if isFull(count) then return failWith('FULL') end
local before, i, estimates = length, 0, {}
for j = 1, count do estimates[j] = permitsOf[j] end
chargeAll(items, false)
if results[before + 1] == DENIED then return end
local expiresAt = now + ttl
for item = 1, items do
while i < ends[item] do
i = i + 1
if allowing[item] and estimates[i] > 0 and not bandsOf[i].hasNoBucket then
loadReserved().add(buckets[i], id, estimates[i] * sharesOf[i], expiresAt, refunded == 1, expiredTicks)
end
end
end
local record = { expiresAt = expiresAt, status = 0, refunded = refunded, text = text, made = packResults(before) }
record.overrides, record.ended = packOverrides(items), ''
setValue(name, packRecord(record), expiryMs(expiresAt + expiredTicks))
end
local function replace(i, id, estimate)
local bucket, actual = buckets[i], permitsOf[i]
if bucket.reserved then reserved.giveBack(bucket, id, max(0, estimate - actual) * sharesOf[i]) end
if actual > estimate then forceBand(i, actual - estimate) end
oldFirsts[i], oldSeconds[i], oldThirds[i], oldFourths[i] = bucket.first, bucket.second, bucket.third, bucket.fourth
end
local function finish(items, count, name, id, status, isTimed)
local value, problem = findRecord(name)
if problem then return fail(problem) end
if not value then return failWith('UNKNOWN') end
local record, before, i = readRecord(value), length, 0
if record.status ~= 0 then return failWith('KNOWN ' .. value) end
local isExpired = now >= record.expiresAt
if isExpired and isTimed == 1 then return failWith('EXPIRED') end
for item = 1, items do
local estimate = isExpired and record.refunded == 1 and 0 or shadows[item]
while i < ends[item] do
i = i + 1
replace(i, id, estimate)
end
end
for j = 1, count do readBack(j) end
emit(GRANTED)
emitBands(count)
if status == ABORT then return call('DEL', name) end
record.status, record.ended = status + 1, packResults(before)
call('SET', name, packRecord(record), 'KEEPTTL')
end
return {
decide = function(operation)
local items, count, problem = readItems(operation)
local key, high, low, first, second, text = unpack(numbers, position + 1, position + 6)
position = position + (operation == RESERVE and 6 or 5)
local name, id = KEYS[key], pack('<I4I4', high, low)
if problem then fail(problem)
elseif operation == RESERVE then reserve(items, count, name, id, first, second, text)
else finish(items, count, name, id, first, second) end
end,
}
end)()
end
return reservations.decide(operation)
end
local items, count, problem = readItems(operation)
if problem then fail(problem)
elseif operation == CHARGE then chargeAll(items, false)
elseif operation == ACQUIRE or operation == QUEUE then acquire(items, count, operation == QUEUE)
elseif operation == RELEASE then release(count)
elseif operation == RENEW then renew(count)
elseif operation == PEEK then chargeAll(items, true)
elseif operation == REFUND then refund(count)
elseif operation == LEASE then lease(count, shadows[1])
elseif operation == FORCE then force(count)
elseif operation == PARTIAL then takePart(count, shadows[1])
elseif operation == BACKDATE then backdate(count)
else settle(count) end
end
return {
chargeRun = chargeRun,
decide = decide,
writeChanged = writeChanged,
extra = function()
problems[#problems + 1] = applied
return problems
end,
}
end)()
end
return operations
end
local runBands, old, new, outcomes = {}, {}, {}, {}
local function stepItem(i, permits, maxWaitTicks, value, first, count)
local allows, isPlain, suffix = true, true, bandAt(first).suffix
local recordBytes = suffix and cellBytes + #suffix or cellBytes
if value and #value ~= recordBytes * count then return false end
for j = 0, count - 1 do
local band, state, outcome, tag = bandAt(first + j), 4 * (i + j), 5 * (i + j), nil
local a, b, c, d
if value then
local at = recordBytes * j + 1
tag, a, b, c, d = unpackNumbers(band.format, value, at)
if tag ~= band.tag then return false end
if suffix and string.sub(value, at + cellBytes, at + recordBytes - 1) ~= band.suffix then return false end
end
runBands[i + j + 1] = band
old[state + 1], old[state + 2], old[state + 3], old[state + 4] = a, b, c, d
local retryAfter, delay, remaining, resetAt, writes
retryAfter, delay, remaining, resetAt, writes, new[state + 1], new[state + 2], new[state + 3], new[state + 4] =
band.algorithm.step(band, permits, now, maxWaitTicks, a, b, c, d)
outcomes[outcome + 1], outcomes[outcome + 2], outcomes[outcome + 3] = retryAfter, delay, remaining
outcomes[outcome + 4], outcomes[outcome + 5] = resetAt, writes
allows = allows and retryAfter == 0
isPlain = isPlain and delay == 0
end
return true, allows, isPlain
end
local function writeItem(name, first, last)
local value, expiresAt = '', 0
for i = first, last do
local band, state = runBands[i], 4 * i - 4
local a, b, c, d = new[state + 1], new[state + 2], new[state + 3], new[state + 4]
expiresAt = max(expiresAt, band.algorithm.expiresAt(band, a, b, c, d))
value = value .. packCell(band, a, b, c, d)
if band.suffix then value = value .. band.suffix end
end
if expiresAt + 1000 * expiryMargin <= now then call('DEL', name) else setValue(name, value, expiryMs(expiresAt)) end
end
local function denyBand(i)
local band, state, outcome, size = runBands[i], 4 * i - 4, 5 * i - 5, nil
local a, b, c, d = old[state + 1], old[state + 2], old[state + 3], old[state + 4]
local retryAfter, delay, remaining, resetAt, moves = outcomes[outcome + 1], outcomes[outcome + 2], outcomes[outcome + 3],
outcomes[outcome + 4], outcomes[outcome + 5]
local e, f, g, h
if retryAfter == 0 or moves then
local _, delay0, remaining0, resetAt0
_, delay0, remaining0, resetAt0, moves, e, f, g, h = band.algorithm.step(band, 0, now, 0, a, b, c, d)
if retryAfter == 0 then delay, remaining, resetAt = delay0, remaining0, resetAt0 end
end
size = a and 4 or 0
if moves then
size = select(band.algorithm.stamp, a, b, c, d)
a, b, c, d = e, f, g, h
end
new[state + 1], new[state + 2], new[state + 3], new[state + 4] = a, b, c, d
results[length + 1], results[length + 2] = retryAfter == never and -1 or retryAfter, delay
results[length + 3], results[length + 4], results[length + 5] = remaining, resetAt, size
results[length + 6], results[length + 7], results[length + 8], results[length + 9] = a or 0, b or 0, c or 0, d or 0
length = length + 9
return moves
end
local function chargeRun(offset, items, key)
local granted, isPlain, count = true, true, 0
for item = 1, items do
local terms = offset + 4 * item
local isDone, allows, isUndelayed =
stepItem(count, numbers[terms - 3], numbers[terms - 2], values[key + item - 1], numbers[terms - 1], numbers[terms])
if not isDone then return false end
granted, isPlain, count = granted and allows, isPlain and isUndelayed, count + numbers[terms]
end
length = length + 1
results[length] = not granted and DENIED or isPlain and ALLOWED or GRANTED
local last = 0
for item = 1, items do
local first, isChanged = last + 1, granted and numbers[offset + 4 * item] > 0
last = last + numbers[offset + 4 * item]
for i = first, last do
local outcome = 5 * i - 5
if not granted then isChanged = denyBand(i) or isChanged
else
if not isPlain then
results[length + 1], results[length + 2] = 0, outcomes[outcome + 2]
length = length + 2
end
results[length + 1], results[length + 2] = outcomes[outcome + 3], outcomes[outcome + 4]
length = length + 2
end
end
if isChanged then writeItem(KEYS[key + item - 1], first, last) end
end
return true
end
return {
chargeRun = function(offset, items, key, listed)
if listed or found or not chargeRun(offset, items, key) then loadOperations().chargeRun(offset, items, key, listed) end
end,
decide = function(operation) loadOperations().decide(operation) end,
finish = function()
if operations then operations.writeChanged() end
end,
extra = function() return operations and operations.extra() end,
}
end)()
end
decision = earlier + number
if items then slowPath.chargeRun(offset, items, key, listed) else slowPath.decide(operation) end
end
if listed then listed = listed + items elseif items then key = key + items end
end
decision = earlier + decisions
if listed then position = listed end
end
local unpackLimit = 4000
for from = 1, charged > 1 and assigned or 0, unpackLimit do
call('MSET', unpack(assignments, from, from + unpackLimit <= assigned and from + unpackLimit - 1 or assigned))
end
for i = 1, charged do
local name, expiry = assignments[2 * i - 1], (expiries[i] - expiryBase) / 1000
expiry = format('%d', expiry + -expiry % 1 + expiryMargin)
if charged == 1 then call('SET', name, assignments[2], expiryOption, expiry)
elseif expiryOption == 'PX' then call('PEXPIRE', name, expiry)
else call('PEXPIREAT', name, expiry) end
end
if slowPath then slowPath.finish() end
local replyLength = length < unpackLimit and length or unpackLimit
local reply = pack('<' .. rep('d', replyLength), unpack(results, 1, replyLength))
for from = unpackLimit + 1, length do reply = reply .. pack('<d', results[from]) end
local extra = slowPath and slowPath.extra()
if extra and extra[1] then return { reply, unpack(extra) } end
return reply`,
}
