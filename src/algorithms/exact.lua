-- Twin of exact.ts: a·b/m for integers whose product may exceed 2^53, by long division if it does. `exactLimit` is 2^53.
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

-- The quotient and the remainder of a·b/m.
local function mulDiv(a, b, m)
  local product = a * b
  if product >= exactLimit then return longMulDiv(a, b, m) end
  local quotient = floor(product / m)
  return quotient, product - quotient * m
end
