/** The cache is cleared when it is full: rows then differ too much for it to help. */
const maxEntries = 10_000

/** Caches a value by the last bytes of a row, without decoding them. */
export class RowEndings<T> {
  readonly #byHash = new Map<number, { readonly bytes: Buffer; readonly value: T }>()

  get(bytes: Buffer, from: number, to: number): T | undefined {
    const known = this.#byHash.get(hashOf(bytes, from, to))
    if (known === undefined || known.bytes.length !== to - from) return undefined
    for (let i = from; i < to; i++) if (bytes[i] !== known.bytes[i - from]) return undefined
    return known.value
  }

  /** Replaces an entry with the same hash. */
  set(bytes: Buffer, from: number, to: number, value: T): void {
    if (this.#byHash.size >= maxEntries) this.#byHash.clear()
    this.#byHash.set(hashOf(bytes, from, to), { bytes: Buffer.from(bytes.subarray(from, to)), value })
  }
}

/** FNV-1a. */
function hashOf(bytes: Buffer, from: number, to: number): number {
  let hash = 0x811c9dc5
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193)
  return hash
}
