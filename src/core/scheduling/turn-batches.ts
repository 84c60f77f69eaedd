import { nextTurn } from './next-turn.js'

export interface BatchOptions<Item> {
  readonly maxWeight: number
  readonly send: (route: number, items: readonly Item[]) => void
}

interface Batch<Item> {
  readonly items: Item[]
  weight: number
}

/**
 * Batches the items of one turn of the event loop per route. The weight of a batch is bounded, so that each batch keeps a
 * server busy for a short time only. A full batch is sent immediately, so that the server processes it while the next batch
 * is built. Items of a route keep their order.
 */
export class TurnBatches<Item> {
  readonly #options: BatchOptions<Item>
  #pending = new Map<number, Batch<Item>>()

  constructor(options: BatchOptions<Item>) {
    this.#options = options
  }

  add(route: number, item: Item, weight: number): void {
    const { maxWeight, send } = this.#options
    // Flushes after all I/O of this turn has been processed.
    if (this.#pending.size === 0) nextTurn(() => this.#flush())
    const batch = this.#pending.get(route)
    if (batch !== undefined && batch.weight + weight <= maxWeight) {
      batch.items.push(item)
      batch.weight += weight
      return
    }
    this.#pending.set(route, { items: [item], weight })
    if (batch !== undefined) send(route, batch.items)
  }

  #flush(): void {
    const pending = this.#pending
    this.#pending = new Map()
    for (const [route, { items }] of pending) this.#options.send(route, items)
  }
}
