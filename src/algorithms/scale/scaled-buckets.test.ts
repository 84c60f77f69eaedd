import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ReservationRequest } from '../../core/reservations/reservation-storage.js'
import type { AlgorithmName, Band } from '../../core/rule.js'
import { memoryStore } from '../../stores/memory/memory-store.js'
import { band, chargeOf, group, second, startMs } from '../../testing/fixtures.js'
import { manualClock } from '../../testing/manual-clock.js'

const algorithms: AlgorithmName[] = [
  'TOKEN_BUCKET',
  'LEAKY_BUCKET',
  'FIXED_WINDOW',
  'SLIDING_WINDOW_LOG',
  'SLIDING_WINDOW_COUNTER',
]

const ruleOf = (fields: Partial<Band>) => {
  const definition = band({ windowTicks: 60 * second, ...fields })
  return group('rule', [definition], { definitions: [definition] })
}

function fixture(algorithm: AlgorithmName) {
  const clock = manualClock(startMs)
  const store = memoryStore({ clock })
  const rule = (capacity: number, fields: Partial<Band> = {}) => ruleOf({ algorithm, capacity, ...fields })
  const charge = (capacity: number, permits: number, fields: Partial<Band> = {}) =>
    store.chargeSync([chargeOf(rule(capacity, fields), 'a', { permits })], false).granted
  const remaining = (capacity: number, fields: Partial<Band> = {}) =>
    store.chargeSync([chargeOf(rule(capacity, fields), 'a', { permits: 0 })], true).bands[0]?.remaining
  return { clock, store, charge, remaining }
}

describe.each(algorithms)('a changed capacity of a %s', (algorithm) => {
  it('keeps the used fraction, there and back', () => {
    const { charge, remaining } = fixture(algorithm)
    charge(100, 40)
    expect(remaining(50)).toBe(30)
    expect(remaining(100)).toBe(60)
    charge(50, 1)
    expect(remaining(50)).toBe(29)
    expect(remaining(100)).toBe(58)
  })

  it('loses nothing if the capacities have no common factor, even with rejections in between', () => {
    const { charge, remaining } = fixture(algorithm)
    charge(100, 40)
    // 13.2 of 33 are used.
    expect(charge(33, 20)).toBe(false)
    expect(remaining(33)).toBe(19)
    expect(remaining(100)).toBe(60)
    charge(33, 1)
    charge(100, 1)
    // 14.2 and 0.33.
    expect(remaining(33)).toBe(18)
    expect(remaining(100)).toBe(55)
  })

  it('allows exactly while the used fractions add up to at most 1, whatever the order of the definitions', () => {
    const capacity = fc.integer({ min: 1, max: 2_000 })
    const definitions = fc.tuple(capacity, capacity)
    const charges = fc.array(
      fc.record({ which: fc.integer({ min: 0, max: 1 }), part: fc.double({ min: 0, max: 0.5, noNaN: true }) }),
    )
    fc.assert(
      fc.property(definitions, charges, (capacities, history) => {
        const { charge, remaining } = fixture(algorithm)
        const [first, second] = capacities.map(BigInt) as [bigint, bigint]
        // In units of 1/(first·second) of the capacity.
        let used = 0n
        for (const { which, part } of history) {
          const [own, other] = which === 0 ? [first, second] : [second, first]
          const permits = BigInt(Math.max(1, Math.floor(Number(own) * part)))
          const fits = used + permits * other <= first * second
          expect(charge(Number(own), Number(permits))).toBe(fits)
          if (fits) used += permits * other
          expect(remaining(Number(own))).toBe(Number((first * second - used) / other))
        }
      }),
      { numRuns: 200 },
    )
  })

  it('allows nothing with a capacity of 0, and keeps the bucket for the next change', () => {
    const { charge, remaining } = fixture(algorithm)
    charge(100, 40)
    expect(charge(0, 1)).toBe(false)
    expect(remaining(0)).toBe(0)
    expect(remaining(50)).toBe(30)
  })

  it('applies from the next decision, until which the old definition refills', () => {
    const { clock, charge, remaining } = fixture(algorithm)
    charge(100, 100)
    clock.advance(60_000)
    if (algorithm === 'SLIDING_WINDOW_COUNTER') clock.advance(60_000)
    expect(remaining(100, { windowTicks: 3600 * second })).toBe(100)
  })
})

describe('a changed window', () => {
  it('refills at the new rate from the first decision after the change', () => {
    const { clock, charge, remaining } = fixture('TOKEN_BUCKET')
    const hour = { windowTicks: 3600 * second }
    charge(60, 60)
    clock.advance(30_000)
    // Half of the minute has refilled half of the bucket.
    expect(charge(60, 31, hour)).toBe(false)
    clock.advance(60_000)
    expect(remaining(60, hour)).toBe(31)
  })

  it('counts in the new window that contains now', () => {
    const { clock, charge, remaining } = fixture('FIXED_WINDOW')
    charge(10, 9, { windowTicks: 3600 * second })
    clock.advance(90_000)
    expect(charge(10, 2)).toBe(false)
    expect(remaining(10)).toBe(1)
    clock.advance(30_000)
    expect(remaining(10)).toBe(10)
  })

  it('keeps the part of the window after which the entries of a log expire', () => {
    const { clock, charge, remaining } = fixture('SLIDING_WINDOW_LOG')
    const hour = { windowTicks: 3600 * second }
    charge(10, 4, hour)
    clock.advance(1_800_000)
    charge(10, 4, hour)
    // Half an hour of an hour is half a minute of a minute.
    expect(charge(10, 3)).toBe(false)
    clock.advance(29_999)
    expect(remaining(10)).toBe(2)
    clock.advance(1)
    expect(remaining(10)).toBe(6)
  })

  it('starts full with another calendar', () => {
    const { charge, remaining } = fixture('FIXED_WINDOW')
    const calendar = { unit: 'MONTH', timeZone: 'UTC', month: 1, day: 1 } as const
    charge(10, 9, { calendar })
    expect(remaining(20, { calendar })).toBe(2)
    expect(remaining(20, { calendar: { ...calendar, timeZone: 'Asia/Seoul' } })).toBe(20)
    expect(remaining(20)).toBe(20)
  })

  it('keeps the bucket under a capacity of 0 with another calendar', () => {
    const { charge, remaining } = fixture('FIXED_WINDOW')
    const calendar = { unit: 'DAY', timeZone: 'Australia/Lord_Howe', month: 1, day: 1 } as const
    charge(10, 9, { calendar })
    expect(charge(0, 1, { calendar: { ...calendar, timeZone: 'UTC' } })).toBe(false)
    expect(remaining(10, { calendar })).toBe(1)
  })
})

describe('operations on a bucket of an earlier definition', () => {
  it('refund the fraction that was charged', async () => {
    const { store, charge, remaining } = fixture('TOKEN_BUCKET')
    charge(100, 40)
    charge(50, 1)
    const before = ruleOf({ capacity: 100 })
    await store.refund([{ group: before, key: 'a', permits: 40 }])
    expect(remaining(50)).toBe(49)
  })

  it('use the limits of a call on the bucket of the rule', () => {
    const { store, charge } = fixture('FIXED_WINDOW')
    charge(100, 40)
    const rule = ruleOf({ algorithm: 'FIXED_WINDOW', capacity: 50 })
    const premium = { ...rule, bands: rule.bands.map((own) => ({ ...own, capacity: 80 })) }
    // 20 of 50 are used, so 60 of 80 are left.
    const { bands } = store.chargeSync([chargeOf(premium, 'a', { permits: 0 })], true)
    expect(bands[0]?.remaining).toBe(60)
  })

  it('charge nothing on a peek', () => {
    const { clock, charge, remaining } = fixture('FIXED_WINDOW')
    charge(100, 40, { windowTicks: 3600 * second })
    for (let i = 0; i < 3; i++) {
      expect(remaining(50)).toBe(30)
      clock.advance(60_000)
    }
    expect(remaining(100, { windowTicks: 3600 * second })).toBe(60)
  })
})

describe('a reservation that is open when the definition changes', () => {
  const requestOf = (fields: Partial<Band> = {}): ReservationRequest => ({
    id: 'one',
    isNamed: true,
    ruleSetId: 'set',
    reason: 'ALLOWED',
    charges: [chargeOf(ruleOf({ capacity: 100, ...fields }), 'a', { permits: 40 })],
    costs: [{ name: 'requests', permits: 1 }],
    names: ['requests'],
    ttlTicks: 10 * second,
    onExpire: 'REFUND',
  })

  it('is settled as the fraction that was charged', async () => {
    const { store, charge, remaining } = fixture('TOKEN_BUCKET')
    await store.reservations?.reserve(requestOf())
    charge(50, 5)
    expect(remaining(50)).toBe(25)
    await store.reservations?.settle({ id: 'one', amounts: { requests: 10 }, currentGroup: (own) => own })
    expect(remaining(50)).toBe(40)
    expect(remaining(100)).toBe(80)
  })

  it('is refunded as the fraction that was charged when it expires', async () => {
    const { clock, store, charge, remaining } = fixture('TOKEN_BUCKET')
    const slow = { windowTicks: 366 * 86_400 * second }
    await store.reservations?.reserve(requestOf(slow))
    charge(50, 5, slow)
    clock.advance(9_999)
    expect(remaining(50, slow)).toBe(25)
    clock.advance(1)
    expect(remaining(50, slow)).toBe(45)
  })
})
