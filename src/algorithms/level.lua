-- Twin of level.ts: a level that grows continuously by `tokens` per window, as whole permits and a fraction in units of 1/window.

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

-- The time in which permits are refilled: whole ticks, and a remainder in units of tick / tokens.
local function ticksFor(permits, band)
  local window, tokens = band.window, band.tokens
  local perPermit = floor(window / tokens)
  local ticks, rest = mulDiv(window - perPermit * tokens, permits, tokens)
  return permits * perPermit + ticks, rest
end

-- Ticks until the level reaches `target` whole permits, rounded up.
local function ticksUntil(whole, fraction, target, band)
  local missing = target - whole
  if missing <= 0 then return 0 end
  local product = missing * band.window
  if product < exactLimit then return ceil((product - fraction) / band.tokens) end
  local ticks, rest = ticksFor(missing, band)
  return ticks + ceil((rest - fraction) / band.tokens)
end

-- As ticksUntil, without rounding, so that delays keep their exact spacing.
local function exactTicksUntil(whole, fraction, target, band)
  local missing = target - whole
  if missing <= 0 then return 0 end
  local ticks, rest = ticksFor(missing, band)
  local over = rest - fraction
  local turns = floor(over / band.tokens)
  return ticks + turns + (over - turns * band.tokens) / band.tokens
end

-- Converts a fraction of another window to a fraction of this band's window, rounded down.
local function carriedFraction(fraction, window, band)
  if window == band.window then return fraction end
  return (mulDiv(fraction, band.window, window))
end
