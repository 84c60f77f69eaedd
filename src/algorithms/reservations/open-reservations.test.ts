import { describe, expect, it } from 'vitest'
import type { Band } from '../../core/rule.js'
import { OpenReservations } from './open-reservations.js'

const band: Band = {
  ...{ label: 'day', algorithm: 'TOKEN_BUCKET', refill: 'STEADY', capacity: 1e9, refillTokens: 1e9, windowTicks: 1e9 },
}

/** A list of reservations that all end at tick 1,000 except every third one, and how often their members were read. */
function listOf(count: number, isRefunded: boolean) {
  const reads = { count: 0 }
  const list = new OpenReservations(band)
  for (let i = 0; i < count; i++) {
    const entry = {
      ...{ id: `job ${i}`, permits: 9, takenAt: i, endsAt: i % 3 === 2 ? 2_000 : 1_000, isRefunded },
      ...{ whole: 9 * (i + 1), fraction: 0 },
    }
    list.add(
      new Proxy(entry, {
        get: (target, name) => {
          reads.count += 1
          return Reflect.get(target, name)
        },
      }),
    )
  }
  reads.count = 0
  return { list, reads }
}

describe('open reservations of a bucket', () => {
  it('end in linear time: twice as many take twice the steps', () => {
    for (const isRefunded of [false, true]) {
      const reads = [3_000, 6_000].map((count) => {
        const { list, reads } = listOf(count, isRefunded)
        expect(list.giveBackEnded(1_000)).toEqual({ whole: isRefunded ? 9 * (2 / 3) * count : 0, fraction: 0 })
        expect(list.size).toBe(count / 3)
        return reads.count
      })
      const [once = 0, twice = 0] = reads
      // A few steps more, because the lists begin and end once.
      expect(twice).toBeLessThanOrEqual(2 * once + 10)
    }
  })

  it('end in linear time in a window: each is read once or twice', () => {
    const { list, reads } = listOf(3_000, true)
    expect(list.takeEnded(1_000)).toHaveLength(2_000)
    expect(reads.count).toBeLessThanOrEqual(2 * 3_000)
  })

  it('are not read before the first of them ends', () => {
    const { list, reads } = listOf(3_000, true)
    expect(list.giveBackEnded(999)).toEqual({ whole: 0, fraction: 0 })
    expect(list.takeEnded(999)).toEqual([])
    expect(reads.count).toBe(0)
  })
})
