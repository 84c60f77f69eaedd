import { describe, expect, it } from 'vitest'
import type { BucketGroup, ChargeResult, LeasingStore } from '../../core/bucket-store.js'
import { band, chargeOf, group, second } from '../../testing/fixtures.js'
import { manualClock } from '../../testing/manual-clock.js'
import { CachedRejections, withCachedRejections } from './cached-rejections.js'

const ruleOf = (capacity = 2): BucketGroup => group('rule', [band({ capacity, windowTicks: 60 * second })])

const refusal = (now: number): ChargeResult => ({
  granted: false,
  now,
  bands: [{ allowed: false, delay: 0, retryAfter: 30 * second, remaining: 0, resetAt: now + 60 * second }],
})

/** A store whose clock is at 5 s when that of this process is at 0, and whose bucket is empty. */
function emptyAt(known: CachedRejections, rule: BucketGroup, key: string): void {
  const now = 5 * second
  known.refused([chargeOf(rule, key)], refusal(now), [[0, 0, now, 60 * second]], 0)
}

describe('KnownRefusals', () => {
  it("counts time from when the store was asked, on the store's clock", () => {
    const clock = manualClock(0)
    const known = new CachedRejections({ clock })
    const rule = ruleOf()
    emptyAt(known, rule, 'a')
    clock.advance(400)
    expect(known.refusalOf([chargeOf(rule, 'a')])).toEqual({
      granted: false,
      now: 5.4 * second,
      bands: [{ allowed: false, delay: 0, retryAfter: 29.6 * second, remaining: 0, resetAt: 65 * second }],
      fromCache: true,
    })
    expect(known.refusalOf([chargeOf(rule, 'b')])).toBeUndefined()
    expect(known.refusalOf([chargeOf(ruleOf(), 'a')])).toBeUndefined()
  })

  it('remembers long keys, each apart, until it is told to forget them', () => {
    const known = new CachedRejections({ clock: manualClock(0) })
    const rule = ruleOf()
    const [long, other] = [`${'x'.repeat(200)}a`, `${'x'.repeat(200)}b`]
    emptyAt(known, rule, long)
    expect(known.refusalOf([chargeOf(rule, long)])).toBeDefined()
    expect(known.refusalOf([chargeOf(rule, other)])).toBeUndefined()
    known.forget(rule, long)
    expect(known.refusalOf([chargeOf(rule, long)])).toBeUndefined()
  })

  it('knows that more than capacity is impossible', () => {
    const known = new CachedRejections({ clock: manualClock(0) })
    const rule = ruleOf()
    emptyAt(known, rule, 'a')
    expect(known.refusalOf([chargeOf(rule, 'a', { permits: 3 })])?.bands[0]?.retryAfter).toBe(Number.POSITIVE_INFINITY)
  })

  it('believes for less than a second, and nothing that is still to come', () => {
    const clock = manualClock(0)
    const known = new CachedRejections({ clock })
    const rule = ruleOf()
    emptyAt(known, rule, 'a')
    clock.advance(999.999)
    expect(known.refusalOf([chargeOf(rule, 'a')])).toBeDefined()
    clock.advance(0.001)
    expect(known.refusalOf([chargeOf(rule, 'a')])).toBeUndefined()
    emptyAt(known, rule, 'a')
    clock.advance(-1_000.001)
    known.peeked([chargeOf(rule, 'a')])
    clock.advance(0.001)
    expect(known.refusalOf([chargeOf(rule, 'a')])).toBeUndefined()
  })

  it('still believes while the store is being asked again, but not for ever', () => {
    const clock = manualClock(0)
    const known = new CachedRejections({ clock })
    const rule = ruleOf()
    const isKnown = () => known.refusalOf([chargeOf(rule, 'a')]) !== undefined
    emptyAt(known, rule, 'a')
    clock.advance(1_000)
    expect([isKnown(), isKnown()]).toEqual([false, true])
    clock.advance(99.999)
    expect(isKnown()).toBe(true)
    clock.advance(0.001)
    expect([isKnown(), isKnown()]).toEqual([false, true])
    known.granted([chargeOf(rule, 'a')])
    expect(isKnown()).toBe(false)
  })

  it('remembers no more than it is told to, and forgets the oldest first', () => {
    const known = new CachedRejections({ clock: manualClock(0), maxBuckets: 3 })
    const rule = ruleOf()
    for (let i = 0; i < 10_000; i++) emptyAt(known, rule, `id${i}`)
    expect(known.size).toBe(3)
    const remembered = [9_996, 9_997, 9_999].map((i) => known.refusalOf([chargeOf(rule, `id${i}`)]) !== undefined)
    expect(remembered).toEqual([false, true, true])
    for (let i = 0; i < 10; i++) emptyAt(known, rule, 'id9997')
    expect(known.size).toBe(3)
  })

  it('does not remember what was not told', () => {
    const known = new CachedRejections({ clock: manualClock(0) })
    const rule = ruleOf()
    known.refused([chargeOf(rule, 'a')], refusal(0), [null], 0)
    expect(known.size).toBe(0)
  })

  it('forgets what was granted', () => {
    const known = new CachedRejections({ clock: manualClock(0) })
    const rule = ruleOf()
    emptyAt(known, rule, 'a')
    known.granted([chargeOf(rule, 'b')])
    expect(known.size).toBe(1)
    known.granted([chargeOf(rule, 'a')])
    expect(known.size).toBe(0)
  })
})

describe('withKnownRefusals', () => {
  it('forgets before a refund or a reset is tried, and once more after it, whatever came of it', async () => {
    const known = new CachedRejections({ clock: manualClock(0) })
    const rule = ruleOf()
    const sizes: number[] = []
    const store: LeasingStore = {
      charge: async () => expect.unreachable(),
      lease: async () => expect.unreachable(),
      settle: async () => expect.unreachable(),
      async refund() {
        sizes.push(known.size)
        emptyAt(known, rule, 'a')
        throw new Error('lost')
      },
      async reset() {
        sizes.push(known.size)
        emptyAt(known, rule, 'a')
        throw new Error('lost')
      },
      async close() {},
    }
    const knowing = withCachedRejections(store, known)
    emptyAt(known, rule, 'a')
    await expect(knowing.refund([{ group: rule, key: 'a', permits: 1 }])).rejects.toThrow('lost')
    emptyAt(known, rule, 'a')
    await expect(knowing.reset(rule, 'a')).rejects.toThrow('lost')
    expect([...sizes, known.size]).toEqual([0, 0, 0])
  })
})
