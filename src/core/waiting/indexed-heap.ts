/** A binary min-heap in which items can be reordered or removed in O(log n). */
export class IndexedHeap<T> {
  readonly #compare: (one: T, other: T) => number
  readonly #items: T[] = []
  readonly #positions = new Map<T, number>()

  constructor(compare: (one: T, other: T) => number) {
    this.#compare = compare
  }

  get size(): number {
    return this.#items.length
  }

  /** The smallest item. */
  get first(): T | undefined {
    return this.#items[0]
  }

  /** Adds the item, or restores the order after the item has changed. */
  set(item: T): void {
    const position = this.#positions.get(item) ?? this.#items.length
    this.#sink(item, this.#rise(item, position))
  }

  delete(item: T): void {
    const position = this.#positions.get(item)
    if (position === undefined) return
    this.#positions.delete(item)
    const last = this.#items.pop() as T
    if (last !== item) this.#sink(last, this.#rise(last, position))
  }

  /** All items, the smallest one first. */
  sorted(): T[] {
    return [...this.#items].sort(this.#compare)
  }

  /** Moves greater parents down and returns the position that becomes free. */
  #rise(item: T, from: number): number {
    let position = from
    while (position > 0) {
      const parent = (position - 1) >>> 1
      if (this.#compare(item, this.#items[parent] as T) >= 0) break
      this.#put(this.#items[parent] as T, position)
      position = parent
    }
    return position
  }

  #sink(item: T, from: number): void {
    let position = from
    for (;;) {
      let child = 2 * position + 1
      if (child >= this.#items.length) break
      const right = child + 1
      if (right < this.#items.length && this.#compare(this.#items[right] as T, this.#items[child] as T) < 0)
        child = right
      if (this.#compare(this.#items[child] as T, item) >= 0) break
      this.#put(this.#items[child] as T, position)
      position = child
    }
    this.#put(item, position)
  }

  #put(item: T, position: number): void {
    this.#items[position] = item
    this.#positions.set(item, position)
  }
}
