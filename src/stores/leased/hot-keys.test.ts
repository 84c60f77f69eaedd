import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../core/seeded-random.js'
import { HotKeys } from './hot-keys.js'

const minRequests = 32
const withinMs = 1_000

describe('HotKeys', () => {
  it('reports a key from its 32nd request in a second, with the time of the first', () => {
    const keys = new HotKeys()
    for (let i = 0; i < 31; i++) expect(keys.count(1, 'a', 100 + i, minRequests, withinMs)).toBeUndefined()
    expect(keys.count(1, 'a', 1_100, minRequests, withinMs)).toEqual({ requests: 32, countedFrom: 100 })
    expect(keys.count(1, 'a', 1_101, minRequests, withinMs)).toBeUndefined()
  })

  it('starts again when the clock steps back', () => {
    const keys = new HotKeys()
    for (let i = 0; i < 31; i++) keys.count(1, 'a', 500, minRequests, withinMs)
    expect(keys.count(1, 'a', 499, minRequests, withinMs)).toBeUndefined()
  })

  it('counts the keys of different rules separately', () => {
    const keys = new HotKeys()
    for (let i = 0; i < 31; i++) keys.count(1, 'a', 0, minRequests, withinMs)
    expect(keys.count(2, 'a', 0, minRequests, withinMs)).toBeUndefined()
    expect(keys.count(1, 'a', 0, minRequests, withinMs)?.requests).toBe(32)
  })

  it('never counts more requests than a key made, among 100 000 other keys', () => {
    const keys = new HotKeys()
    const random = seededRandom(7)
    const made = new Map<string, number>()
    let excess = 0
    for (let i = 0; i < 300_000; i++) {
      const key = `user-${Math.floor(random() ** 3 * 100_000)}`
      made.set(key, (made.get(key) ?? 0) + 1)
      const found = keys.count(1, key, 0, 2, withinMs)
      if ((found?.requests ?? 0) > (made.get(key) as number)) excess += 1
    }
    expect(excess).toBe(0)
  })

  it('finds all of 1000 busy keys that are requested in turn, and none of 100 000 others', () => {
    const keys = new HotKeys()
    const found = new Set<string>()
    const ask = (key: string, now: number): void => {
      // A busy key is leased and is no longer counted.
      if (!found.has(key) && keys.count(1, key, now, minRequests, withinMs) !== undefined) found.add(key)
    }
    for (let turn = 0; turn < 500; turn++) {
      const now = turn * 5
      for (let i = 0; i < 1_000; i++) ask(`busy-${i}`, now)
      for (let i = 0; i < 200; i++) ask(`other-${turn * 200 + i}`, now)
    }
    expect([...found].filter((key) => key.startsWith('other'))).toEqual([])
    expect(found.size).toBe(1_000)
  })
})
