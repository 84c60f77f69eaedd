import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { RecentCount } from './recent-count.js'

describe('RecentCount', () => {
  it('counts (t − window, t], without an event that is exactly one window old', () => {
    const recent = new RecentCount(1_000)
    recent.add(0)
    expect(recent.add(999)).toBe(2)
    expect(recent.countAt(999)).toBe(2)
    expect(recent.countAt(1_000)).toBe(1)
    expect(recent.countAt(1_998)).toBe(1)
    expect(recent.countAt(1_999)).toBe(0)
  })

  it('counts a thousand events of the same tick', () => {
    const recent = new RecentCount(1_000)
    for (let i = 0; i < 1_000; i++) recent.add(5)
    expect(recent.countAt(1_004)).toBe(1_000)
    expect(recent.countAt(1_005)).toBe(0)
  })

  it('agrees with a full count for any gaps', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(50), { maxLength: 200 }), fc.integer({ min: 1, max: 300 }), (gaps, window) => {
        const recent = new RecentCount(window)
        const seen: number[] = []
        let now = 0
        for (const gap of gaps) {
          now += gap
          seen.push(now)
          const expected = seen.filter((at) => at > now - window).length
          expect(recent.add(now)).toBe(expected)
        }
      }),
    )
  })
})
