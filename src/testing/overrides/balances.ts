import assert from 'node:assert/strict'
import type { BandResult, BucketGroup, BucketStore } from '../../core/bucket-store.js'
import type { Band } from '../../core/rule.js'
import { seededRandom } from '../../core/seeded-random.js'
import { chargeOf, second } from '../fixtures.js'
import type { ManualClock } from '../manual-clock.js'
import { referenceStore } from '../models/reference-store.js'
import { bandOf, bookOf, limit, nameOf, overridable, type WithStore } from './fixtures.js'

/** The part of the override contract about starting balances. */
export function balanceContract(withStore: WithStore, seed: number): void {
  const rule = overridable('rule', [bandOf(10)])

  withStore('applies a starting balance once, with the refill since its time', async (store, clock) => {
    const overrides = bookOf(store)
    const remainingOf = async (key: string) =>
      (await store.charge([chargeOf(rule, key, { permits: 0 })], true)).bands.map(({ remaining }) => remaining)
    const balance = { permits: 3, atMs: clock.now() }
    await store.charge([chargeOf(rule, 'a', { permits: 10 })], false)
    await overrides.put(nameOf(rule, 'a'), { ...limit(), balance })
    await overrides.put(nameOf(rule, 'b'), { ...limit(bandOf(100)), balance: { ...balance, permits: 0 } })
    await overrides.put(nameOf(rule, 'c'), { ...limit(bandOf(100), bandOf(2)), balance })
    assert.deepEqual(await bookOf(store).get(nameOf(rule, 'a')), { ...limit(), balance })
    assert.deepEqual([await remainingOf('a'), await remainingOf('b'), await remainingOf('c')], [[3], [0], [3, 2]])
    const rejected = await store.charge([chargeOf(rule, 'a', { permits: 4 })], false)
    assert.deepEqual([rejected.granted, rejected.bands[0]?.retryAfter], [false, second / 10])
    assert.equal((await store.charge([chargeOf(rule, 'a', { permits: 3 })], false)).granted, true)
    clock.advance(500)
    assert.deepEqual([await remainingOf('a'), await remainingOf('b'), await remainingOf('c')], [[5], [50], [53, 2]])
    // The refund exceeds what was taken, so the bucket is full before the balance alone would be.
    await store.refund([{ group: rule, key: 'b', permits: 100 }])
    await store.refund([{ group: rule, key: 'c', permits: 7 }])
    assert.deepEqual([await remainingOf('b'), await remainingOf('c')], [[100], [60, 2]])
    clock.advance(600)
    assert.deepEqual([await remainingOf('a'), await remainingOf('b'), await remainingOf('c')], [[10], [100], [100, 2]])
    await overrides.put(nameOf(rule, 'a'), { ...limit(), balance: { permits: 3, atMs: clock.now() } })
    assert.deepEqual(await remainingOf('a'), [3])
    await store.charge([chargeOf(rule, 'a', { permits: 2 })], false)
    await store.reset(rule, 'a')
    assert.deepEqual(await remainingOf('a'), [3])
    await overrides.delete(nameOf(rule, 'a'))
    assert.deepEqual(await remainingOf('a'), [10])
  })

  for (const one of balanceBands)
    withStore(
      `${one.refill === 'INTERVAL' ? 'INTERVAL' : one.algorithm}: treats a balance as if the rest had been taken at its time (seed ${seed})`,
      (store, clock) => compareBalances(store, clock, one, seed),
    )
}

const balanceBands: readonly Band[] = [
  bandOf(8, { windowTicks: 700_000 }),
  bandOf(8, { refill: 'INTERVAL', refillTokens: 3, windowTicks: 300_000 }),
  bandOf(8, { algorithm: 'LEAKY_BUCKET', windowTicks: 900_000 }),
  bandOf(8, { algorithm: 'FIXED_WINDOW' }),
  bandOf(8, { algorithm: 'SLIDING_WINDOW_LOG' }),
  bandOf(8, { algorithm: 'SLIDING_WINDOW_COUNTER', windowTicks: 600_000 }),
]

/** Compares keys with balances in their own bands and in the bands of the rule, used at various times after the balance. */
async function compareBalances(store: BucketStore, clock: ManualClock, one: Band, seed: number): Promise<void> {
  const random = seededRandom(seed)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const model = referenceStore({ clock })
  const rule = overridable(`balance-${one.algorithm}-${one.refill}`, [one])
  const plain: BucketGroup = { ...rule, hasOverrides: false }
  for (let round = 0; round < 12; round++) {
    const keys = ['ann', 'bob', 'carol'].map((name) => `${name}-${round}`)
    for (const [i, key] of keys.entries()) {
      const permits = Math.floor(random() * 9)
      const balance = { permits, atMs: clock.now() }
      await bookOf(store).put(nameOf(rule, key), { ...(i === 0 ? limit() : limit(one)), balance })
      if (permits < 8) await model.charge([chargeOf(plain, key, { permits: 8 - permits })], false)
    }
    for (let step = 0; step < 12; step++) {
      // Balances have a resolution of one millisecond.
      clock.advance(Math.floor(random() * 200))
      const { key, permits, peek } = { key: pick(keys), permits: 1 + Math.floor(random() * 4), peek: random() < 0.3 }
      const where = `seed ${seed}, round ${round}, step ${step}`
      if (random() < 0.2) {
        await store.refund([{ group: rule, key, permits }])
        await model.refund([{ group: plain, key, permits }])
      }
      const waiting = random() < 0.2 ? { maxWaitTicks: second } : {}
      const found = await store.charge([chargeOf(rule, key, { permits, ...waiting })], peek)
      const expected = await model.charge([chargeOf(plain, key, { permits, ...waiting })], peek)
      assert.deepEqual(
        [found.granted, found.bands.slice(0, 1).map(fieldsOf)],
        [expected.granted, expected.bands.map(fieldsOf)],
        where,
      )
    }
  }
}

const fieldsOf = ({ allowed, delay, retryAfter, remaining, resetAt }: BandResult): BandResult => ({
  allowed,
  delay,
  retryAfter,
  remaining,
  resetAt,
})
