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

/** The index of the first entry of a sorted list whose key is not before `key`. Calls `keyOf` once per step of a bisection. */
export function firstFrom<T>(sorted: readonly T[], key: string, keyOf: (entry: T) => string): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (inUtf8Order(keyOf(sorted[middle] as T), key) < 0) low = middle + 1
    else high = middle
  }
  return low
}
