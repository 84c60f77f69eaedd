import { compileGlob, matchesGlob, type SegmentGlob } from './segment-glob.js'

interface Entry<Item> {
  readonly glob: SegmentGlob
  readonly item: Item
}

/** Values by their text, and which lengths those texts have, the shortest first. */
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
    const place = this.lengths.findIndex((length) => length >= text.length)
    if (place === -1) this.lengths.push(text.length)
    else if (this.lengths[place] !== text.length) this.lengths.splice(place, 0, text.length)
    return value
  }
}

/**
 * Globs of one level by their literal text: at most one lookup for each length of a prefix, and there for each length of a
 * suffix. So the cost does not grow with the number of globs, except of those that have prefix and suffix in common and
 * differ between: `rules/crowded-globs` bounds these.
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

  /** Those whose prefix and suffix the segment has. */
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
