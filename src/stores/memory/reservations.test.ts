import { describe, expect, it } from 'vitest'
import { manualClock } from '../../testing/manual-clock.js'
import { compareReservations } from '../../testing/reservations/histories.js'
import { MemoryBuckets } from './buckets.js'
import { memoryStore } from './memory-store.js'
import { MemoryReservations } from './reservations.js'

const histories = Number(process.env.FLUXGATE_TEST_HISTORIES ?? 150)
const first = Number(process.env.FLUXGATE_TEST_SEED ?? Date.now() % 1e9)

describe('reservations in memory', () => {
  it(`equal the reference models over random histories (seed ${first})`, async () => {
    for (let seed = first; seed < first + histories; seed++)
      await compareReservations((clock) => memoryStore({ clock }), {
        seed,
        steps: 100,
        maxCapacity: seed % 3 === 0 ? 1e9 : 20,
        isDense: seed % 2 === 0,
      })
  })

  const expiresIn = (seconds: number, id: string) => ({
    ...{ id, isNamed: true, charges: [], ttlTicks: seconds * 1_000_000, onExpire: 'KEEP' as const },
    ...{ ruleSetId: null, reason: 'NO_RULE' as const, costs: [], names: ['requests'] },
  })

  it('have room again a minute after some of them have expired', async () => {
    const clock = manualClock(0)
    const reservations = new MemoryReservations(new MemoryBuckets(1_000, clock), clock, 3)
    for (const id of ['a', 'b', 'c'])
      expect(await reservations.reserve(expiresIn(id === 'b' ? 1 : 600, id))).toMatchObject({ reason: 'NO_RULE' })
    clock.advance(60_999)
    expect(await reservations.reserve(expiresIn(1, 'd'))).toBe('FULL')
    clock.advance(1)
    expect(await reservations.reserve(expiresIn(1, 'd'))).toMatchObject({ reason: 'NO_RULE' })
    expect(['a', 'b', 'c', 'd'].map((id) => reservations.has(id))).toEqual([true, false, true, true])
  })
})
