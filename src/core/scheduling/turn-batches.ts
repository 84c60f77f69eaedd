/**
 * Gathers what is asked for in one turn of the event loop and sends it together, per route, in pieces of a bounded weight,
 * so that a server is busy for a short while with each. A piece that is full goes at once, so that the server works on it
 * while the next is put together. Order is kept within a route.
 */
export interface BatchOptions<Item> {
  readonly weightOf: (item: Item) => number
  readonly maxWeight: number
  readonly send: (route: number, items: readonly Item[]) => void
}

interface Piece<Item> {
  readonly items: Item[]
  weight: number
}

export class TurnBatches<Item> {
  readonly #options: BatchOptions<Item>
  #waiting = new Map<number, Piece<Item>>()

  constructor(options: BatchOptions<Item>) {
    this.#options = options
  }

  add(route: number, item: Item): void {
    const { weightOf, maxWeight, send } = this.#options
    // After everything that has arrived in this turn was looked at.
    if (this.#waiting.size === 0) setImmediate(() => this.#flush())
    const weight = weightOf(item)
    const piece = this.#waiting.get(route)
    if (piece !== undefined && piece.weight + weight <= maxWeight) {
      piece.items.push(item)
      piece.weight += weight
      return
    }
    this.#waiting.set(route, { items: [item], weight })
    if (piece !== undefined) send(route, piece.items)
  }

  #flush(): void {
    const waiting = this.#waiting
    this.#waiting = new Map()
    for (const [route, { items }] of waiting) this.#options.send(route, items)
  }
}
