/**
 * Computes a·b/m exactly for integers whose product may exceed 2⁵³, where plain arithmetic would round.
 *
 * For all legal bands, a ≤ m < 2⁴⁵. Long division over b in digits of seven bits therefore keeps all intermediate values
 * exact. Floating-point division of integers below 2⁵³ never rounds up to the next integer, so `Math.floor(x / y)` is exact.
 */
/** All integers below this are exact. */
export const exactLimit = 2 ** 53
const digit = 128

/** ⌊a·b/m⌋ */
export function mulDiv(a: number, b: number, m: number): number {
  const product = a * b
  return product < exactLimit ? Math.floor(product / m) : longMulDiv(a, b, m)
}

/** a·b mod m */
export function mulMod(a: number, b: number, m: number): number {
  const product = a * b
  if (product < exactLimit) return product - Math.floor(product / m) * m
  let rest = 0
  for (let place = topPlace(b), left = b; place >= 1; place /= digit) {
    const figure = Math.floor(left / place)
    left -= figure * place
    const value = rest * digit + a * figure
    rest = value - Math.floor(value / m) * m
  }
  return rest
}

/** ⌈a·b/m⌉ */
export function mulDivUp(a: number, b: number, m: number): number {
  return mulDiv(a, b, m) + (mulMod(a, b, m) > 0 ? 1 : 0)
}

function longMulDiv(a: number, b: number, m: number): number {
  let quotient = 0
  let rest = 0
  for (let place = topPlace(b), left = b; place >= 1; place /= digit) {
    const figure = Math.floor(left / place)
    left -= figure * place
    const value = rest * digit + a * figure
    const share = Math.floor(value / m)
    quotient = quotient * digit + share
    rest = value - share * m
  }
  return quotient
}

function topPlace(b: number): number {
  let place = 1
  while (place * digit <= b) place *= digit
  return place
}
