import { describe, expect, it } from 'vitest'
import { type Queued, WaitingQueue } from './waiting-queue.js'

/** Counts how often the queue looks at any item. */
class Item implements Queued<Item> {
  static looks = 0
  #links: Queued<Item>['queueLinks']

  get queueLinks(): Queued<Item>['queueLinks'] {
    Item.looks += 1
    return this.#links
  }

  set queueLinks(links: Queued<Item>['queueLinks']) {
    Item.looks += 1
    this.#links = links
  }
}

const queueOf = (items: readonly Item[]): WaitingQueue<Item> => {
  const queue = new WaitingQueue<Item>()
  for (const item of items) queue.push(item)
  return queue
}
const items = (count: number): Item[] => Array.from({ length: count }, () => new Item())

describe('WaitingQueue', () => {
  it('is first in, first out', () => {
    const [a, b, c] = items(3) as [Item, Item, Item]
    const queue = queueOf([a, b, c])
    expect([queue.shift(), queue.shift(), queue.shift(), queue.shift()]).toEqual([a, b, c, undefined])
    expect(queue.size).toBe(0)
    queue.push(b)
    expect(queue.shift()).toBe(b)
  })

  it.each([0, 1, 2])('keeps the order of the others when the item at position %d is removed', (position) => {
    const all = items(3)
    const queue = queueOf(all)
    const [left] = all.splice(position, 1) as [Item]
    queue.remove(left)
    queue.remove(left)
    expect(queue.size).toBe(2)
    queue.push(left)
    expect([queue.shift(), queue.shift(), queue.shift()]).toEqual([...all, left])
  })

  it('calls back for every item, even if items are removed in the meantime', () => {
    const all = items(4)
    const queue = queueOf(all)
    const seen: Item[] = []
    queue.forEach((item) => {
      seen.push(item)
      queue.remove(item)
    })
    expect(seen).toEqual(all)
    expect(queue.size).toBe(0)
  })

  it.each([10, 10_000])('accesses a constant number of items to remove one of %d', (count) => {
    const all = items(count)
    const queue = queueOf(all)
    Item.looks = 0
    for (const item of all.toReversed()) queue.remove(item)
    expect(Item.looks).toBeLessThanOrEqual(6 * count)
  })
})
