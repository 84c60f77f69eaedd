/** Compares the bans of a store with their reference model on random histories. */
import assert from 'node:assert/strict'
import type { Ban } from '../../core/bans/ban.js'
import type { BanStorage, KeyBan } from '../../core/bans/ban-storage.js'
import { type BucketGroup, type BucketStore, copyResult } from '../../core/bucket-store.js'
import type { EntryQuery } from '../../core/overrides/override-storage.js'
import type { Band } from '../../core/rule.js'
import { type Random, seededRandom } from '../../core/seeded-random.js'
import type { StoreFactory } from '../bucket-store-contract.js'
import { band, chargeOf, group, second, startMs } from '../fixtures.js'
import { manualClock } from '../manual-clock.js'
import { referenceStore } from '../models/reference-store.js'

const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
const keys = ['alice', 'bob', 'böb', 'bo']

/** Numbers whose escalation is exact in the numbers of a store, so that the model can be. */
function randomBan(random: Random): Ban {
  const forTicks = 1_000 * (1 + Math.floor(random() * 60_000))
  const factor = pick(random, [1, 1, 2, 3, 10, 1.5, 2.5])
  return {
    after: pick(random, [1, 2, 3, 5]),
    withinTicks: pick(random, [1_000, second, 60 * second]),
    forTicks,
    factor,
    maxTicks: forTicks * pick(random, [1, 2, 7, 100]),
  }
}

function randomGroups(random: Random): BucketGroup[] {
  const algorithm = pick(random, ['FIXED_WINDOW', 'TOKEN_BUCKET', 'SLIDING_WINDOW_LOG', 'LEAKY_BUCKET'] as const)
  const bands: Band[] = [
    band({ algorithm, capacity: pick(random, [1, 2]), windowTicks: pick(random, [1_000, second]) }),
  ]
  if (random() < 0.4) bands.push(band({ label: 'slow', capacity: 3, windowTicks: 600 * second }))
  const plain = group('plain', [band({ capacity: 4, windowTicks: 30 * second })])
  return [
    group('banning', bands, { ban: randomBan(random) }),
    group('other', [band({ capacity: 2 })], { ban: randomBan(random) }),
    plain,
  ]
}

/** Runs one random history on the store and on the model, and asserts that they agree. */
export async function compareBans(create: StoreFactory, seed: number, steps: number): Promise<void> {
  const random = seededRandom(seed)
  const clock = manualClock(startMs)
  const store = await create(clock)
  const model = referenceStore({ clock })
  const bans = store.bans ?? assert.fail('The store does not support bans.')
  const groups = randomGroups(random)
  const [banning, other] = groups as [BucketGroup, BucketGroup]
  try {
    for (let step = 0; step < steps; step++) {
      const where = `seed ${seed}, step ${step}`
      const key = pick(random, keys)
      clock.advance((await pauseAt(random, model, banning, key)) / 1_000)
      const kind = random()
      const rule = random() < 0.8 ? banning : other
      const both = async (what: string, act: (bans: BanStorage) => Promise<unknown>): Promise<void> =>
        assert.deepEqual(
          await act(bans),
          await act(model.bans as BanStorage),
          `${where}: ${what} ${rule.ruleId} ${key}`,
        )
      const forTicks = Math.ceil(random() * 2e8)
      if (kind < 0.04) await both('set', (one) => one.set(rule, key, { forTicks }))
      else if (kind < 0.08) await both('lift', (one) => one.lift(rule, key))
      else if (kind < 0.1) for (const one of [store, model]) await one.reset(rule, key)
      else if (kind < 0.16) await both('get', (one) => one.get(rule, key))
      else if (kind < 0.22) {
        const [prefix, after] = [pick(random, ['', 'b', 'bo']), pick(random, ['', 'bo'])]
        const limit = pick(random, [1, 2, 9])
        await both(`list ${prefix} ${after} ${limit}`, (one) => allPages(one, rule, { prefix, after, limit }))
      } else {
        const chosen = groups.filter(() => random() < 0.6)
        const charges = (chosen.length > 0 ? chosen : [banning]).map((one) =>
          chargeOf(one, key, { permits: 1, shadow: random() < 0.05 }),
        )
        const peek = kind > 0.9
        const expected = await model.charge(charges, peek)
        const actual = copyResult(charges, await store.charge(charges, peek))
        assert.deepEqual(actual, expected, `${where}: ${JSON.stringify({ charges, peek })}`)
      }
    }
  } finally {
    await store.close()
  }
}

/** The bans of all pages. A page may be shorter than its limit, and the last one may be empty. */
async function allPages(bans: BanStorage, rule: BucketGroup, query: EntryQuery): Promise<readonly KeyBan[]> {
  const { bans: page, next } = await bans.list(rule, query)
  assert.ok(page.length <= query.limit)
  return next === undefined ? page : [...page, ...(await allPages(bans, rule, { ...query, after: next }))]
}

/** Ticks until the next step: often none, sometimes exactly until a ban ends or one before. */
async function pauseAt(random: Random, model: BucketStore, rule: BucketGroup, key: string): Promise<number> {
  const kind = random()
  const { withinTicks = 0, maxTicks = 0 } = rule.ban ?? {}
  const ban = await model.bans?.get(rule, key)
  if (ban !== undefined && kind < 0.1) return ban.until - ban.now
  if (ban !== undefined && kind < 0.2) return ban.until - ban.now - 1
  if (kind < 0.6) return Math.floor(random() * 3)
  if (kind < 0.75) return Math.floor(random() * withinTicks)
  if (kind < 0.8) return withinTicks
  if (kind < 0.85) return maxTicks
  return 0
}
