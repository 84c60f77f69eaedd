-- Twin of shares.ts: the unit in which a bucket of a rule with `onRuleChange: SCALE` counts.
local maxShares, maxLogShares = 2 ^ 38, 2 ^ 23 - 1

local function greatestCommonDivisor(a, b)
  while b > 0 do a, b = b, a % b end
  return a
end

-- The shares of a bucket after a charge under `capacity`. `largest` is the largest other number of permits that is counted in shares.
local function sharesFor(shares, capacity, largest, most)
  local perPermit = shares / greatestCommonDivisor(shares, capacity)
  if perPermit * capacity > most then perPermit = floor(most / capacity) end
  if perPermit * largest > most then perPermit = max(1, floor(most / largest)) end
  return capacity * perPermit
end

-- value·to/from, rounded up.
local function scaleUp(value, to, from)
  local quotient, rest = mulDiv(to, value, from)
  return rest > 0 and quotient + 1 or quotient
end

-- Scales `whole` + `fraction`/window by to/from, rounded up.
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
