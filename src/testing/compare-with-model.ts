import assert from 'node:assert/strict'
import { algorithmTraits } from '../core/algorithm-traits.js'
import {
  type BucketGroup,
  type BucketStore,
  type Charge,
  type ChargeResult,
  type ChargeVariant,
  copyResult,
  type Refund,
} from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import type { Hold } from '../core/holds/hold-storage.js'
import { algorithmNames, type Band } from '../core/rule.js'
import { seededRandom } from '../core/seeded-random.js'
import { chargeOf, group } from './fixtures.js'
import { manualClock } from './manual-clock.js'
import { type ReferenceStore, referenceStore } from './models/reference-store.js'
import { type BandChoice, editedBand, randomBand, randomCharges, randomPause, redefinedBand } from './random-charges.js'

/** Parameters of one random history. */
export interface Comparison extends BandChoice {
  /** The seed of the history; the same seed gives the same history. */
  readonly seed: number
  /** The number of calls. */
  readonly steps: number
  /** The maximum number of rules per decision. */
  readonly maxRules?: number
  /** The maximum number of bands per rule. */
  readonly maxBands?: number
  /** The time at which the history starts, in epoch milliseconds. */
  readonly startMs?: number
  /**
   * For rules with `onRuleChange: SCALE`: edits change capacities, refills and windows. With ALTERNATING, earlier versions of the rules
   * are used again, as by other processes that still have old rules.
   */
  readonly scaled?: 'FORWARD' | 'ALTERNATING'
}

/**
 * Runs one random history on the store and on the reference models, and asserts that they agree in every field of every
 * result. A history contains charges, peeks, forced and partial charges, refunds, releases, renewals, resets, edits, pauses from a microsecond to months, and clock steps back.
 */
export async function compareWithModel(
  create: (clock: Clock) => BucketStore | Promise<BucketStore>,
  { seed, steps, maxRules = 3, maxBands = 4, startMs = 1_790_000_000_000, scaled, ...choice }: Comparison,
): Promise<void> {
  const random = seededRandom(seed)
  const clock = manualClock(startMs)
  const store = await create(clock)
  const model = referenceStore({ clock })
  const supported = algorithmNames.filter((name) => !algorithmTraits[name].takesHolds || store.holds !== undefined)
  const { algorithms = supported } = choice
  const count = (max: number): number => 1 + Math.floor(random() * max)
  const groupOf = (ruleId: string, bands: readonly Band[]): BucketGroup =>
    group(ruleId, bands, scaled === undefined ? {} : { definitions: bands })
  let groups = Array.from({ length: count(maxRules) }, (_, rule) =>
    groupOf(
      `rule${rule}`,
      Array.from({ length: count(maxBands) }, (_, band) =>
        randomBand(random, `band${band}`, { ...choice, algorithms }),
      ),
    ),
  )
  const versions = [groups]
  const keys = ['alice', 'bob']
  let granted: Refund[] = []
  /** Holds that were taken; some have been released or have expired. */
  let held: Hold[][] = []
  // A generator of their own, so that other steps do not depend on whether the store supports variants.
  const variants = seededRandom(seed ^ 0x5eed)
  try {
    for (let step = 0; step < steps; step++) {
      const where = `seed ${seed}, step ${step}`
      const charges = randomCharges(random, groups, keys)
      const pause = randomPause(random, (charges[0] as Charge).group.bands[0] as Band)
      if (pause >= 0 || (await resetFull(store, model, groups, keys))) clock.advance(pause / 1000)
      const kind = random()
      if (scaled !== undefined && kind < 0.1) {
        const redefined = groups.map(({ ruleId, bands }) =>
          groupOf(
            ruleId,
            bands.map((band) => redefinedBand(random, band)),
          ),
        )
        if (scaled === 'FORWARD') {
          groups = redefined
          granted = []
          held = []
        } else {
          if (versions.length < 4 && random() < 0.5) versions.push(redefined)
          groups = versions[Math.floor(random() * versions.length)] as BucketGroup[]
        }
      } else if (scaled === undefined && kind < 0.04 && (await resetFull(store, model, groups, keys))) {
        groups = groups.map(({ ruleId, bands }) =>
          group(
            ruleId,
            bands.map((band) => editedBand(random, band)),
          ),
        )
        granted = []
        held = []
        // A store notices an edit at the next use of the rule.
        await both(
          store,
          model,
          async (one) =>
            void (await one.charge(
              groups.map((rule) => chargeOf(rule, 'other')),
              true,
            )),
        )
      } else if (kind < 0.06) await both(store, model, (one) => one.reset((charges[0] as Charge).group, 'alice'))
      else if (kind < 0.14) await both(store, model, (one) => one.refund(granted))
      else if (kind < 0.26 && held.length > 0) {
        const index = Math.floor(random() * held.length)
        const holds = held[index] as Hold[]
        const act = (one: BucketStore) => (kind < 0.19 ? one.holds?.renew(holds) : one.holds?.release(holds))
        const expected = await act(model)
        assert.equal(await act(store), expected, `${where}: ${JSON.stringify({ kind, holds })}`)
        if (random() < 0.7) held.splice(index, 1)
      } else if (store.variants !== undefined && variants() < 0.15) {
        const [first] = charges as [Charge]
        if (!first.group.takesHolds)
          await compareVariant(store, model, first, variants() < 0.5 ? 'FORCE' : 'PARTIAL', where)
      } else {
        const peek = kind < 0.24
        const expected = await model.charge(charges, peek)
        // Every other step without a promise, where the store can do that.
        const actual =
          (step % 2 === 0 ? store.chargeSync?.(charges, peek) : undefined) ?? (await store.charge(charges, peek))
        assert.deepEqual(copyResult(charges, actual), expected, `${where}: ${JSON.stringify({ charges, peek })}`)
        if (actual.granted && !peek) {
          granted = refundsOf(charges, actual)
          const holds = charges.flatMap(({ group, key, hold }) => (hold === undefined ? [] : [{ group, key, hold }]))
          if (holds.length > 0) held.push(holds)
        }
      }
    }
  } finally {
    await store.close()
  }
}

async function compareVariant(
  store: BucketStore,
  model: BucketStore,
  given: Charge,
  variant: ChargeVariant,
  where: string,
): Promise<void> {
  const charge = { ...given, maxWaitTicks: 0 }
  const expected = await model.variants?.charge(charge, variant)
  assert.deepEqual(await store.variants?.charge(charge, variant), expected, `${where}: ${variant}`)
}

async function both(one: BucketStore, other: BucketStore, act: (store: BucketStore) => Promise<void>): Promise<void> {
  await act(one)
  await act(other)
}

/**
 * Resets all full buckets. A store may evict a full bucket at any time. That makes a difference only if the clock then steps
 * back to a time when the bucket was not full, or if its capacity is raised. Full buckets are therefore reset before such an
 * event. Returns false if only some bands of a rule are full, because these cannot be reset separately.
 */
async function resetFull(
  store: BucketStore,
  model: ReferenceStore,
  groups: readonly BucketGroup[],
  keys: readonly string[],
): Promise<boolean> {
  const pairs = groups.flatMap((group) => keys.map((key) => ({ group, key, isFull: model.spent(group, key) })))
  if (!pairs.every(({ isFull }) => isFull.every(Boolean) || !isFull.some(Boolean))) return false
  for (const { group, key, isFull } of pairs)
    if (isFull.every(Boolean)) await both(store, model, (one) => one.reset(group, key))
  return true
}

/** The refunds that undo a granted decision. */
function refundsOf(charges: readonly Charge[], result: ChargeResult): Refund[] {
  let index = 0
  return charges.map(({ group, key, permits, hold }) => ({
    group,
    key,
    permits,
    ...(hold !== undefined && { hold }),
    grantedAt: group.bands.map(() => result.now + (result.bands[index++]?.delay ?? 0)),
  }))
}
