import { compileGlob, matchesGlob, type SegmentGlob } from './segment-glob.js'

interface Entry<Item> {
  readonly glob: SegmentGlob
  readonly item: Item
}

/** A map with text keys that also lists the distinct lengths of its keys, the shortest first. */
class ByText<Value> {
  readonly lengths: number[] = []
  readonly #values = new Map<string, Value>()

  get(text: string): Value | undefined {
    return this.#values.get(text)
  }

  getOrAdd(text: string, create: () => Value): Value {
    const known = this.#values.get(text)
    if (known !== undefined) return known
    const value = create()
    this.#values.set(text, value)
    const index = this.lengths.findIndex((length) => length >= text.length)
    if (index === -1) this.lengths.push(text.length)
    else if (this.lengths[index] !== text.length) this.lengths.splice(index, 0, text.length)
    return value
  }
}

/**
 * Indexes the globs of one path level by their literal prefix and suffix. A search takes at most one lookup per distinct
 * prefix length, and per distinct suffix length below it. The cost grows only with the number of globs that share both
 * prefix and suffix, which `rules/similar-globs` limits.
 */
export class GlobIndex<Item> {
  readonly #byPrefix = new ByText<ByText<Entry<Item>[]>>()

  add(text: string, item: Item): void {
    const glob = compileGlob(text)
    const bySuffix = this.#byPrefix.getOrAdd(glob.prefix, () => new ByText())
    bySuffix.getOrAdd(glob.suffix, () => []).push({ glob, item })
  }

  /** The items whose globs match a segment. */
  find(segment: string): Item[] {
    const found: Item[] = []
    for (const { glob, item } of this.candidates(segment)) if (matchesGlob(glob, segment)) found.push(item)
    return found
  }

  /** The entries whose prefix and suffix match the segment. */
  candidates(segment: string): Entry<Item>[] {
    const found: Entry<Item>[] = []
    for (const length of this.#byPrefix.lengths) {
      if (length > segment.length) break
      const bySuffix = this.#byPrefix.get(segment.slice(0, length))
      if (bySuffix === undefined) continue
      for (const suffixLength of bySuffix.lengths) {
        if (length + suffixLength > segment.length) break
        const entries = bySuffix.get(segment.slice(segment.length - suffixLength))
        if (entries !== undefined) for (const entry of entries) found.push(entry)
      }
    }
    return found
  }
}
