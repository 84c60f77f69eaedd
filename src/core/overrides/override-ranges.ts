import { type Cidr, parseCidr } from '../keys/ip-address.js'

/**
 * Maps address ranges to values. If several ranges contain an address, the smallest one applies. A search takes one lookup per
 * distinct prefix length, regardless of the number of ranges.
 */
export class OverrideRanges<T> {
  /** By prefix length, the longest first, and then by the prefix bits. */
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

  /** `key` is an address, or a network that is limited as one client: `2001:db8:0:100::/56`. */
  find(key: string): T | undefined {
    if (this.#lengths.length === 0) return undefined
    const address = parseCidr(key)
    if (address === undefined) return undefined
    for (const [prefix, byBits] of this.#lengths) {
      if (prefix > address.prefix) continue
      const found = byBits.get(bitsOf(address, prefix))
      if (found !== undefined) return found
    }
    return undefined
  }
}

/** The first `prefix` bits. An IPv4 address starts with the IPv4-mapped prefix, so that no IPv6 range of that length contains it. */
function bitsOf({ groups }: Cidr, prefix: number): string {
  const whole = prefix >> 4
  const rest = prefix & 15
  const bits = String.fromCharCode(...groups.subarray(0, whole))
  return rest === 0 ? bits : `${bits}${String.fromCharCode((groups[whole] as number) & (0xffff << (16 - rest)))}`
}
