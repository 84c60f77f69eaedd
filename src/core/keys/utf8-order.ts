/** Compares two strings by their UTF-8 bytes. */
export function inUtf8Order(one: string, other: string): number {
  const length = Math.min(one.length, other.length)
  for (let i = 0; i < length; i++) {
    const [unit, otherUnit] = [one.charCodeAt(i), other.charCodeAt(i)]
    if (unit !== otherUnit) return rankOf(unit) - rankOf(otherUnit)
  }
  return one.length - other.length
}

/** Sorts surrogates after all other code units, as UTF-8 does with the characters that they encode. */
const rankOf = (unit: number): number => (unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800)
