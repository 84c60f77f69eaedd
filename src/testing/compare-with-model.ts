import assert from 'node:assert/strict'
import {
  type BucketGroup,
  type BucketStore,
  type ChargeResult,
  copyResult,
  type Demand,
  type Refund,
} from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import type { Band } from '../core/rule.js'
import { demand, group } from './demands.js'
import { type BandChoice, editedBand, randomBand, randomDemands, randomPause, seededRandom } from './history.js'
import { manualClock } from './manual-clock.js'
import { type ReferenceStore, referenceStore } from './models/reference-store.js'

export interface Comparison extends BandChoice {
  readonly seed: number
  readonly steps: number
  readonly maxRules?: number
  readonly maxBands?: number
  readonly startMs?: number
}

/**
 * Lives through one random history on the given store and on the models, and demands that they agree in every field of
 * every answer: charges, peeks, refunds, resets, edits, pauses from a microsecond to months, and steps back.
 */
export async function compareWithModel(
  create: (clock: Clock) => BucketStore | Promise<BucketStore>,
  { seed, steps, maxRules = 3, maxBands = 4, startMs = 1_790_000_000_000, ...choice }: Comparison,
): Promise<void> {
  const random = seededRandom(seed)
  const clock = manualClock(startMs)
  const store = await create(clock)
  const model = referenceStore({ clock })
  const count = (most: number): number => 1 + Math.floor(random() * most)
  let groups = Array.from({ length: count(maxRules) }, (_, rule) =>
    group(
      `rule${rule}`,
      Array.from({ length: count(maxBands) }, (_, band) => randomBand(random, `band${band}`, choice)),
    ),
  )
  const keys = ['alice', 'bob']
  let granted: Refund[] = []
  try {
    for (let step = 0; step < steps; step++) {
      const place = `seed ${seed}, step ${step}`
      const demands = randomDemands(random, groups, keys)
      const pause = randomPause(random, (demands[0] as Demand).group.bands[0] as Band)
      if (pause >= 0 || (await forgetSpent(store, model, groups, keys))) clock.advance(pause / 1000)
      const kind = random()
      if (kind < 0.04 && (await forgetSpent(store, model, groups, keys))) {
        groups = groups.map(({ ruleId, bands }) =>
          group(
            ruleId,
            bands.map((band) => editedBand(random, band)),
          ),
        )
        granted = []
        // A store hears of an edit when a rule is next used.
        await both(
          store,
          model,
          async (one) =>
            void (await one.charge(
              groups.map((rule) => demand(rule, 'nobody')),
              true,
            )),
        )
      } else if (kind < 0.06) await both(store, model, (one) => one.reset((demands[0] as Demand).group, 'alice'))
      else if (kind < 0.14) await both(store, model, (one) => one.refund(granted))
      else {
        const peek = kind < 0.24
        const expected = await model.charge(demands, peek)
        // Every other step without a promise, where the store can do that.
        const actual =
          (step % 2 === 0 ? store.chargeSync?.(demands, peek) : undefined) ?? (await store.charge(demands, peek))
        assert.deepEqual(copyResult(demands, actual), expected, `${place}: ${JSON.stringify({ demands, peek })}`)
        if (actual.granted && !peek) granted = refundsOf(demands, actual)
      }
    }
  } finally {
    await store.close()
  }
}

async function both(one: BucketStore, other: BucketStore, act: (store: BucketStore) => Promise<void>): Promise<void> {
  await act(one)
  await act(other)
}

/**
 * A bucket that is full may be forgotten or not, which makes a difference only if time then steps back to when it was
 * not full, or the capacity is raised. So before such an event the full ones are forgotten by all; false if a rule is
 * full in some of its bands only.
 */
async function forgetSpent(
  store: BucketStore,
  model: ReferenceStore,
  groups: readonly BucketGroup[],
  keys: readonly string[],
): Promise<boolean> {
  const pairs = groups.flatMap((group) => keys.map((key) => ({ group, key, spent: model.spent(group, key) })))
  if (!pairs.every(({ spent }) => spent.every(Boolean) || !spent.some(Boolean))) return false
  for (const { group, key, spent } of pairs)
    if (spent.every(Boolean)) await both(store, model, (one) => one.reset(group, key))
  return true
}

/** What would undo a granted decision, band by band. */
function refundsOf(demands: readonly Demand[], result: ChargeResult): Refund[] {
  let index = 0
  return demands.map(({ group, key, permits }) => ({
    group,
    key,
    permits,
    grantedAt: group.bands.map(() => result.now + (result.bands[index++]?.delay ?? 0)),
  }))
}
