/** Compares the engine with the reference models on random histories, which fast-check generates and shrinks. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Refund } from '../core/bucket-store.js'
import { type AlgorithmName, algorithmNames, type Band, maxFillTicks, maxLogCapacity } from '../core/rule.js'
import { memoryStore } from '../stores/memory/memory-store.js'
import { band as bandWith, chargeOf, group } from '../testing/fixtures.js'
import { manualClock } from '../testing/manual-clock.js'
import { referenceStore } from '../testing/models/reference-store.js'

const ms = 1_000
const month = 30 * 24 * 3600 * 1000 * ms
const windows = [1, 3, 500, 1000, 60_000, 3_600_000, 31 * 86_400_000, 366 * 86_400_000].map((window) => window * ms)

const bandOf = (algorithm: AlgorithmName, refill: Band['refill'], maxFill = maxFillTicks): fc.Arbitrary<Band> => {
  const maxCapacity = algorithm === 'SLIDING_WINDOW_LOG' ? maxLogCapacity : 1e9
  const sizes = fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: maxCapacity }))
  return fc
    .record({ capacity: sizes, refillTokens: sizes, windowTicks: fc.constantFrom(...windows) })
    .filter(({ capacity, refillTokens, windowTicks }) => Math.ceil(capacity / refillTokens) * windowTicks < maxFill)
    .map((sizes) => ({ label: 'band', algorithm, refill, ...sizes }))
}

/** Pauses are fractions of the window, so that histories reach the window boundaries of small and large windows. */
const event = fc.record({
  kind: fc.constantFrom('consume', 'consume', 'consume', 'consume', 'peek', 'wait', 'refund', 'edit' as const),
  pause: fc.oneof(
    fc.constant({ ticks: 0, part: 0 }),
    fc.constant({ ticks: 1, part: 0 }),
    fc.record({ ticks: fc.constant(0), part: fc.double({ min: 0, max: 2.5, noNaN: true }) }),
    fc.record({ ticks: fc.integer({ min: 1, max: 3 * month }), part: fc.constant(0) }),
  ),
  permits: fc.double({ min: 0, max: 1.1, noNaN: true }),
})

const cases: [AlgorithmName, Band['refill']][] = [
  ...algorithmNames.map((name): [AlgorithmName, 'STEADY'] => [name, 'STEADY']),
  ['TOKEN_BUCKET', 'INTERVAL'],
]

describe.each(cases)('%s, refilled %s', (algorithm, refill) => {
  it('agrees with the arbitrary-precision model in every field of every decision', async () => {
    await fc.assert(
      fc.asyncProperty(bandOf(algorithm, refill), fc.array(event, { maxLength: 40 }), async (first, history) => {
        const clock = manualClock(1_800_000_000_000)
        const [store, model] = [memoryStore({ clock }), referenceStore({ clock })]
        let rule = group('rule', [first])
        let last: Refund[] = []
        for (const { kind, pause, permits: part } of history) {
          const band = rule.bands[0] as Band
          clock.advance((pause.ticks + Math.floor(pause.part * band.windowTicks)) / 1000)
          const permits = Math.max(1, Math.ceil(part * band.capacity))
          const maxWaitTicks = kind === 'wait' ? Math.floor(part * 3 * band.windowTicks) : 0
          const charge = chargeOf(rule, 'a', { permits, maxWaitTicks })
          if (kind === 'refund') for (const one of [store, model]) await one.refund(last)
          else if (kind === 'edit') {
            // A store may or may not evict a full bucket, which would make a difference after an edit.
            if (model.spent(rule, 'a')[0]) for (const one of [store, model]) await one.reset(rule, 'a')
            const capacity = Math.max(1, Math.min(Math.ceil(part * 2 * band.capacity), 1e5))
            rule = { ...rule, bands: [{ ...band, capacity, refillTokens: capacity }] }
          } else {
            const [actual, expected] = [
              await store.charge([charge], kind === 'peek'),
              await model.charge([charge], kind === 'peek'),
            ]
            expect(actual).toMatchObject(expected as object)
            if (actual.granted && kind !== 'peek')
              last = [{ group: rule, key: 'a', permits, grantedAt: [actual.now + (actual.bands[0]?.delay ?? 0)] }]
          }
        }
      }),
      { numRuns: 400 },
    )
  })

  it('denies one microsecond before retryAfter and grants at it, for every band', async () => {
    await fc.assert(
      // A clock in milliseconds is exact to the microsecond only over a few decades.
      fc.asyncProperty(
        bandOf(algorithm, refill, 2 ** 49),
        fc.array(event, { maxLength: 12 }),
        async (band, history) => {
          const clock = manualClock(1_800_000_000_000)
          const store = memoryStore({ clock })
          const rule = group('rule', [band])
          for (const { pause, permits: part } of history) {
            clock.advance((pause.ticks + Math.floor(pause.part * band.windowTicks)) / 1000)
            const permits = Math.min(band.capacity, Math.max(1, Math.ceil(part * band.capacity)))
            const charge = chargeOf(rule, 'a', { permits })
            const { granted, bands } = store.chargeSync([charge], false)
            if (granted) continue
            clock.advance(((bands[0]?.retryAfter ?? 0) - 1) / 1000)
            expect(store.chargeSync([charge], false).granted).toBe(false)
            clock.advance(0.001)
            expect(store.chargeSync([charge], false).granted).toBe(true)
          }
        },
      ),
      { numRuns: 300 },
    )
  })
})

describe('a refund to a leaky bucket after the release time of its slot', () => {
  const leaky = group('rule', [bandWith({ algorithm: 'LEAKY_BUCKET', capacity: 10 })])

  async function chargedAt(...pausesMs: readonly number[]) {
    const clock = manualClock(1_800_000_000_000)
    const store = memoryStore({ clock })
    const charge = () => store.chargeSync([chargeOf(leaky, 'a')], false)
    const { now } = charge()
    const late: Refund = { group: leaky, key: 'a', permits: 1, grantedAt: [now] }
    for (const pauseMs of pausesMs) {
      clock.advance(pauseMs)
      charge()
    }
    return { clock, store, late, charge }
  }

  it('keeps the distance between later releases', async () => {
    // Released at 0 and at 100 ms; the second drains until 200 ms.
    const { clock, store, late, charge } = await chargedAt(10)
    clock.advance(140)
    await store.refund([late])
    expect(charge().bands[0]?.delay).toBe(50 * ms)
  })

  it('refunds the rest of the last slot', async () => {
    const { clock, store, late, charge } = await chargedAt()
    clock.advance(40)
    await store.refund([late])
    expect(charge().bands[0]?.delay).toBe(0)
  })
})
