import { type Cidr, parseCidr } from '../keys/ip-address.js'

/**
 * Values by ranges of addresses; the smallest range that holds an address counts. There is one lookup for each length of
 * prefix that occurs, whatever the number of ranges.
 */
export class OverrideRanges<T> {
  /** By length of prefix, the longest first; then by the bits of the range. */
  readonly #lengths: (readonly [prefix: number, byBits: Map<string, T>])[] = []

  constructor(ranges: Iterable<readonly [text: string, value: T]>) {
    const lengths = new Map<number, Map<string, T>>()
    for (const [text, value] of ranges) {
      const range = parseCidr(text)
      if (range === undefined) continue
      const byBits = lengths.get(range.prefix) ?? new Map<string, T>()
      byBits.set(bitsOf(range, range.prefix), value)
      lengths.set(range.prefix, byBits)
    }
    this.#lengths = [...lengths].sort(([one], [other]) => other - one)
  }

  /** `identity` is an address, or a network that counts as one: `2001:db8:0:100::/56`. */
  find(identity: string): T | undefined {
    if (this.#lengths.length === 0) return undefined
    const address = parseCidr(identity)
    if (address === undefined) return undefined
    for (const [prefix, byBits] of this.#lengths) {
      if (prefix > address.prefix) continue
      const found = byBits.get(bitsOf(address, prefix))
      if (found !== undefined) return found
    }
    return undefined
  }
}

/** The first bits. An IPv4 address has the marks of one in front, so that no IPv6 range of such a length holds it. */
function bitsOf({ groups }: Cidr, prefix: number): string {
  const whole = prefix >> 4
  const rest = prefix & 15
  const bits = String.fromCharCode(...groups.subarray(0, whole))
  return rest === 0 ? bits : `${bits}${String.fromCharCode((groups[whole] as number) & (0xffff << (16 - rest)))}`
}
