import assert from 'node:assert/strict'
import type { BandResult, BucketGroup, BucketStore } from '../../core/bucket-store.js'
import type { Band } from '../../core/rule.js'
import { demand, second } from '../demands.js'
import { seededRandom } from '../history.js'
import type { ManualClock } from '../manual-clock.js'
import { referenceStore } from '../models/reference-store.js'
import { bandOf, bookOf, limit, nameOf, overridable, type WithStore } from './override-bed.js'

/** The part of the contract that is about what an identity begins with. */
export function balanceContract(withStore: WithStore, seed: number): void {
  const rule = overridable('rule', [bandOf(10)])

  withStore('an identity begins with its balance, refilled since, and not with it again', async (store, clock) => {
    const book = bookOf(store)
    const look = async (key: string) =>
      (await store.charge([demand(rule, key, { permits: 0 })], true)).bands.map(({ remaining }) => remaining)
    const balance = { permits: 3, atMs: clock.now() }
    await store.charge([demand(rule, 'a', { permits: 10 })], false)
    await book.put(nameOf(rule, 'a'), { ...limit(), balance })
    await book.put(nameOf(rule, 'b'), { ...limit(bandOf(100)), balance: { ...balance, permits: 0 } })
    await book.put(nameOf(rule, 'c'), { ...limit(bandOf(100), bandOf(2)), balance })
    assert.deepEqual(await bookOf(store).get(nameOf(rule, 'a')), { ...limit(), balance })
    assert.deepEqual([await look('a'), await look('b'), await look('c')], [[3], [0], [3, 2]])
    const refused = await store.charge([demand(rule, 'a', { permits: 4 })], false)
    assert.deepEqual([refused.granted, refused.bands[0]?.retryAfter], [false, second / 10])
    assert.equal((await store.charge([demand(rule, 'a', { permits: 3 })], false)).granted, true)
    clock.advance(500)
    assert.deepEqual([await look('a'), await look('b'), await look('c')], [[5], [50], [53, 2]])
    // More comes back than was taken: full is full, though the balance alone would not be yet.
    await store.refund([{ group: rule, key: 'b', permits: 100 }])
    await store.refund([{ group: rule, key: 'c', permits: 7 }])
    assert.deepEqual([await look('b'), await look('c')], [[100], [60, 2]])
    clock.advance(600)
    assert.deepEqual([await look('a'), await look('b'), await look('c')], [[10], [100], [100, 2]])
    await book.put(nameOf(rule, 'a'), { ...limit(), balance: { permits: 3, atMs: clock.now() } })
    assert.deepEqual(await look('a'), [3])
    await store.charge([demand(rule, 'a', { permits: 2 })], false)
    await store.reset(rule, 'a')
    assert.deepEqual(await look('a'), [3])
    await book.delete(nameOf(rule, 'a'))
    assert.deepEqual(await look('a'), [10])
  })

  for (const one of begunBands)
    withStore(
      `a balance of ${one.refill === 'INTERVAL' ? 'INTERVAL' : one.algorithm} is as if the rest had been taken at its time (seed ${seed})`,
      (store, clock) => compareBegun(store, clock, one, seed),
    )
}

const begunBands: readonly Band[] = [
  bandOf(8, { windowTicks: 700_000 }),
  bandOf(8, { refill: 'INTERVAL', refillTokens: 3, windowTicks: 300_000 }),
  bandOf(8, { algorithm: 'LEAKY_BUCKET', windowTicks: 900_000 }),
  bandOf(8, { algorithm: 'FIXED_WINDOW' }),
  bandOf(8, { algorithm: 'SLIDING_WINDOW_LOG' }),
  bandOf(8, { algorithm: 'SLIDING_WINDOW_COUNTER', windowTicks: 600_000 }),
]

/** Identities with balances of bands of their own and of the rule's, some used at once and some long after. */
async function compareBegun(store: BucketStore, clock: ManualClock, one: Band, seed: number): Promise<void> {
  const random = seededRandom(seed)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const model = referenceStore({ clock })
  const rule = overridable(`begun-${one.algorithm}-${one.refill}`, [one])
  const plain: BucketGroup = { ...rule, hasOverrides: false }
  for (let round = 0; round < 12; round++) {
    const keys = ['ann', 'bob', 'carol'].map((name) => `${name}-${round}`)
    for (const [i, key] of keys.entries()) {
      const permits = Math.floor(random() * 9)
      const balance = { permits, atMs: clock.now() }
      await bookOf(store).put(nameOf(rule, key), { ...(i === 0 ? limit() : limit(one)), balance })
      if (permits < 8) await model.charge([demand(plain, key, { permits: 8 - permits })], false)
    }
    for (let step = 0; step < 12; step++) {
      // A balance counts in whole milliseconds.
      clock.advance(Math.floor(random() * 200))
      const asked = { key: pick(keys), permits: 1 + Math.floor(random() * 4), peek: random() < 0.3 }
      const place = `seed ${seed}, round ${round}, step ${step}`
      if (random() < 0.2) {
        await store.refund([{ group: rule, key: asked.key, permits: asked.permits }])
        await model.refund([{ group: plain, key: asked.key, permits: asked.permits }])
      }
      const given = random() < 0.2 ? { patience: second } : {}
      const found = await store.charge([demand(rule, asked.key, { permits: asked.permits, ...given })], asked.peek)
      const expected = await model.charge([demand(plain, asked.key, { permits: asked.permits, ...given })], asked.peek)
      assert.deepEqual(
        [found.granted, found.bands.slice(0, 1).map(said)],
        [expected.granted, expected.bands.map(said)],
        place,
      )
    }
  }
}

const said = ({ allowed, delay, retryAfter, remaining, resetAt }: BandResult): BandResult => ({
  allowed,
  delay,
  retryAfter,
  remaining,
  resetAt,
})
