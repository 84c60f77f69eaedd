import { describe, expect, it } from 'vitest'
import { FrequentKeys } from './frequent-keys.js'

const shown = (key: string): string => key
const named = (key: string) => ({ ruleSetId: 'api', ruleId: 'per-ip', key })
const keysOf = (keys: FrequentKeys, at: number): string[] => keys.read(at).map(({ key }) => key)

describe('FrequentKeys', () => {
  it('ranks keys by frequency', () => {
    const keys = new FrequentKeys(10, shown)
    for (const [key, times] of [
      ['a', 3],
      ['b', 5],
      ['c', 1],
    ] as const)
      keys.add(named(key), key === 'b', times, 0)
    expect(keysOf(keys, 0)).toEqual(['b', 'a', 'c'])
    expect(keys.read(0)[0]).toMatchObject({ requests: 5, denied: 5, lastAt: 0 })
  })

  it('finds a frequent key among a million rare ones in bounded memory', () => {
    const keys = new FrequentKeys(100, shown)
    for (let i = 0; i < 1_000_000; i++) {
      keys.add(named(`once-${i}`), false, 1, 0)
      if (i % 50 === 0) keys.add(named('often'), true, 1, 0)
    }
    expect(keys.size).toBeLessThan(200)
    expect(keysOf(keys, 0)[0]).toBe('often')
    expect(keys.read(0)[0]?.requests).toBe(20_000)
  })

  it('halves the weight of a request after five minutes, and removes keys that do not return', () => {
    const keys = new FrequentKeys(10, shown)
    keys.add(named('a'), true, 8, 0)
    expect(keys.read(300_000)[0]).toMatchObject({ requests: 4, denied: 4 })
    expect(keys.read(600_000)[0]).toMatchObject({ requests: 2, denied: 2 })
    expect(keys.read(3 * 3_600_000)).toEqual([])
  })

  it('ranks a new key above one that was busy an hour ago', () => {
    const keys = new FrequentKeys(10, shown)
    keys.add(named('old'), true, 1_000, 0)
    keys.add(named('new'), true, 10, 3_600_000)
    expect(keysOf(keys, 3_600_000)).toEqual(['new', 'old'])
  })
})
