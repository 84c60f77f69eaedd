/** The order of the bytes as UTF-8, in which text of any language has one. */
export function inUtf8Order(one: string, other: string): number {
  const length = Math.min(one.length, other.length)
  for (let i = 0; i < length; i++) {
    const [unit, otherUnit] = [one.charCodeAt(i), other.charCodeAt(i)]
    if (unit !== otherUnit) return placeOf(unit) - placeOf(otherUnit)
  }
  return one.length - other.length
}

/** Characters of two units come behind all others. */
const placeOf = (unit: number): number => (unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800)
