/** An item of a WaitingQueue. Its links are stored in the item itself, so that it is removed without a search. */
export interface Queued<T> {
  queueLinks: QueueLinks<T> | undefined
}

interface QueueLinks<T> {
  previous: T | undefined
  next: T | undefined
}

/** A FIFO queue. Adding, removing at any position and taking the first are O(1). An item can be in one queue at a time. */
export class WaitingQueue<T extends Queued<T>> {
  #first: T | undefined
  #last: T | undefined
  #size = 0

  get size(): number {
    return this.#size
  }

  get first(): T | undefined {
    return this.#first
  }

  push(item: T): void {
    item.queueLinks = { previous: this.#last, next: undefined }
    if (this.#last?.queueLinks) this.#last.queueLinks.next = item
    else this.#first = item
    this.#last = item
    this.#size += 1
  }

  /** Does nothing if the item is not queued. */
  remove(item: T): void {
    const links = item.queueLinks
    if (links === undefined) return
    item.queueLinks = undefined
    this.#size -= 1
    const { previous, next } = links
    if (previous?.queueLinks) previous.queueLinks.next = next
    else this.#first = next
    if (next?.queueLinks) next.queueLinks.previous = previous
    else this.#last = previous
  }

  shift(): T | undefined {
    const first = this.#first
    if (first !== undefined) this.remove(first)
    return first
  }

  /** Calls back for each item, in order. The callback may remove its item. */
  forEach(callback: (item: T) => void): void {
    for (let item = this.#first; item !== undefined; ) {
      const next: T | undefined = item.queueLinks?.next
      callback(item)
      item = next
    }
  }
}
