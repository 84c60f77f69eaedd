import { describe, expect, it } from 'vitest'
import { ExpiringMap } from './expiring-map.js'

/** A map of 40,000 entries that is full, and the number of entries that it has inspected. */
function fullMap(expiresAt: (i: number) => number) {
  const inspected = { count: 0 }
  const map = new ExpiringMap<number>(40_000, (value, now) => {
    inspected.count += 1
    return value <= now
  })
  for (let i = 0; i < 40_000; i++) map.set(String(i), expiresAt(i))
  return { map, inspected }
}

describe('an expiring map', () => {
  it('inspects at most 1,000 entries per call if it is full', () => {
    const { map, inspected } = fullMap(() => 10)
    for (let i = 1; i <= 100; i++) {
      expect(map.makeRoom(9)).toBe(false)
      expect(inspected.count).toBeLessThanOrEqual(1_000 * i)
    }
  })

  it('inspects 4 entries per call if there is room', () => {
    const { map, inspected } = fullMap((i) => (i < 1_000 ? 10 : 20))
    expect(map.makeRoom(10)).toBe(true)
    inspected.count = 0
    expect(map.makeRoom(10)).toBe(true)
    expect(inspected.count).toBe(4)
  })

  it('finds the only expired entry within 41 calls, wherever it is', () => {
    for (const place of [0, 999, 1_000, 39_999]) {
      const { map } = fullMap((i) => (i === place ? 10 : 20))
      let calls = 1
      while (!map.makeRoom(10)) calls += 1
      expect(calls).toBeLessThanOrEqual(41)
    }
  })

  it('returns no entry that has expired', () => {
    const { map } = fullMap(() => 10)
    expect([map.get('7', 9), map.get('7', 10), map.get('none', 0)]).toEqual([10, undefined, undefined])
  })
})
