/**
 * Gathers what is asked for in one turn of the event loop and sends it together, per route, in pieces of a bounded weight,
 * so that a server is busy for a short while with each. Order is kept within a route.
 */
export interface BatchOptions<Item> {
  readonly weightOf: (item: Item) => number
  readonly maxWeight: number
  readonly send: (route: number, items: readonly Item[]) => void
}

export class TurnBatches<Item> {
  readonly #options: BatchOptions<Item>
  #waiting = new Map<number, Item[]>()

  constructor(options: BatchOptions<Item>) {
    this.#options = options
  }

  add(route: number, item: Item): void {
    // After everything that has arrived in this turn was looked at.
    if (this.#waiting.size === 0) setImmediate(() => this.#flush())
    const items = this.#waiting.get(route)
    if (items === undefined) this.#waiting.set(route, [item])
    else items.push(item)
  }

  #flush(): void {
    const waiting = this.#waiting
    this.#waiting = new Map()
    for (const [route, items] of waiting) for (const piece of this.#pieces(items)) this.#options.send(route, piece)
  }

  #pieces(items: readonly Item[]): readonly (readonly Item[])[] {
    const { weightOf, maxWeight } = this.#options
    const pieces: Item[][] = []
    let room = 0
    for (const item of items) {
      const weight = weightOf(item)
      if (pieces.length === 0 || weight > room) {
        pieces.push([])
        room = maxWeight
      }
      pieces.at(-1)?.push(item)
      room -= weight
    }
    return pieces
  }
}
