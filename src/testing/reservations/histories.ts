import assert from 'node:assert/strict'
import {
  type BucketGroup,
  type BucketStore,
  bandCount,
  type Charge,
  copyResult,
  type Refund,
} from '../../core/bucket-store.js'
import type { Clock } from '../../core/clock.js'
import type {
  ReservationRequest,
  ReservationStorage,
  ReservedState,
  SettleOutcome,
} from '../../core/reservations/reservation-storage.js'
import { type Costs, requestCost } from '../../core/rule.js'
import { type Random, seededRandom } from '../../core/seeded-random.js'
import { band, group } from '../fixtures.js'
import { manualClock } from '../manual-clock.js'
import { type ReferenceStore, referenceStore } from '../models/reference-store.js'
import { randomBand, randomCharges, randomPause } from '../random-charges.js'

/** Parameters of one random history of reservations. */
export interface ReservationHistory {
  /** The seed of the history; the same seed gives the same history. */
  readonly seed: number
  /** The number of calls. */
  readonly steps: number
  readonly maxCapacity?: number
  /** True for one token bucket with many overlapping reservations. */
  readonly isDense?: boolean
  /** Makes a call. A store that can crash repeats the call until it succeeds. Default: calls once. */
  readonly call?: <T>(call: () => Promise<T>) => Promise<T>
  /** Replaces the process of the store with a new one. Default: there is no other process. */
  readonly restart?: () => Promise<BucketStore>
}

const algorithms = ['TOKEN_BUCKET', 'FIXED_WINDOW', 'SLIDING_WINDOW_LOG', 'SLIDING_WINDOW_COUNTER'] as const
const costNames = [requestCost, 'tokens'] as const
const keys = ['alice', 'bob']

/**
 * Runs one random history on the store and on the reference models, and asserts that they agree in every field of every result.
 * A history contains reservations, settlements and cancellations, also repeated, late and of unknown ids, and between them
 * charges, peeks, refunds, forced charges, resets, pauses and restarts of the process.
 */
export async function compareReservations(
  create: (clock: Clock) => BucketStore | Promise<BucketStore>,
  { seed, steps, maxCapacity, isDense = false, call = (once) => once(), restart }: ReservationHistory,
): Promise<void> {
  const random = seededRandom(seed)
  const clock = manualClock(1_790_000_000_000)
  let store = await create(clock)
  const model = referenceStore({ clock, reserves: true })
  const groups = isDense ? [denseGroup(random)] : randomGroups(random, maxCapacity)
  const ids: string[] = []
  let refunds: Refund[] = []
  try {
    for (let step = 0; step < steps; step++) {
      const where = `seed ${seed}, step ${step}`
      clock.advance((isDense ? shortPause(random) : Math.max(0, pauseOf(random, groups))) / 1000)
      const charges = randomCharges(random, groups, isDense ? ['alice'] : keys).map((charge) => ({
        ...charge,
        maxWaitTicks: 0,
      }))
      const kind = random()
      if (kind < 0.02 && restart !== undefined) store = await restart()
      else if (kind < 0.3) {
        const id = random() < 0.15 && ids.length > 0 ? pick(random, ids) : `${seed}-${step}`
        const request = randomRequest(random, id, charges)
        const expected = await reservationsOf(model).reserve(request)
        assert.deepEqual(
          plain(await call(() => reservationsOf(store).reserve(request))),
          plain(expected),
          `${where}: reserve ${id}`,
        )
        ids.push(id)
      } else if (kind < 0.55 && ids.length > 0) {
        const request = {
          id: random() < 0.03 ? 'unknown' : pick(random, random() < 0.7 ? ids.slice(-5) : ids),
          amounts: random() < 0.25 ? undefined : randomAmounts(random, groups),
          currentGroup: ({ ruleId }: BucketGroup) => groups.find((one) => one.ruleId === ruleId),
        }
        const expected = await reservationsOf(model).settle(request)
        assert.deepEqual(
          plain(await call(() => reservationsOf(store).settle(request))),
          plain(expected),
          `${where}: settle ${JSON.stringify(request)}`,
        )
      } else if (kind < 0.6) {
        await both(store, model, (one) => one.refund(refunds))
        refunds = []
      } else if (kind < 0.62) {
        const key = pick(random, keys)
        await both(store, model, (one) => one.reset((charges[0] as Charge).group, key))
        refunds = []
      } else if (kind < 0.7 && store.variants !== undefined) {
        const expected = await model.variants?.charge(charges[0] as Charge, 'FORCE')
        assert.deepEqual(await store.variants.charge(charges[0] as Charge, 'FORCE'), expected, `${where}: force`)
      } else {
        const peek = kind > 0.92
        const expected = await model.charge(charges, peek)
        const actual = await store.charge(charges, peek)
        assert.deepEqual(copyResult(charges, actual), expected, `${where}: ${JSON.stringify({ charges, peek })}`)
        if (actual.granted && !peek && refunds.length === 0 && random() < 0.2) refunds = refundsOf(charges, expected)
      }
    }
  } finally {
    await store.close()
  }
}

const reservationsOf = ({ reservations }: BucketStore): ReservationStorage =>
  reservations ?? assert.fail('The store keeps no reservations.')

/** The members of an outcome that every store has in common. */
function plain(outcome: ReservedState | SettleOutcome | 'FULL'): unknown {
  if (typeof outcome === 'string' || !('charges' in outcome)) return outcome
  const { ruleSetId, reason, charges, result } = outcome
  const { granted, now, bands } = result
  const isCanceled = 'isCanceled' in outcome ? outcome.isCanceled : undefined
  const shown = charges.map(({ group, key, policy, shadow }) => ({
    ruleId: group.ruleId,
    bands: group.bands,
    ...{ key, policy, shadow },
  }))
  return { ruleSetId, reason, charges: shown, granted, now, bands: bands.slice(0, bandCount(charges)), isCanceled }
}

const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T

const randomGroups = (random: Random, maxCapacity = 1e9): readonly BucketGroup[] =>
  Array.from({ length: 1 + Math.floor(random() * 3) }, (_, rule) =>
    group(
      `rule${rule}`,
      Array.from({ length: 1 + Math.floor(random() * 3) }, (_, band) =>
        randomBand(random, `band${band}`, { algorithms, maxCapacity, calendars: random() < 0.3 }),
      ),
    ),
  )

/** A bucket that refills in about a second, from empty to full. */
const denseGroup = (random: Random): BucketGroup =>
  group('rule0', [
    {
      ...band({ capacity: 20 + Math.floor(random() * 80) }),
      refill: random() < 0.3 ? 'INTERVAL' : 'STEADY',
      refillTokens: 1 + Math.floor(random() * 30),
      windowTicks: 100_003 + Math.floor(random() * 400_000),
    },
  ])

const shortPause = (random: Random): number => (random() < 0.3 ? 0 : Math.floor(random() ** 3 * 500_000))

const pauseOf = (random: Random, groups: readonly BucketGroup[]): number => {
  const { bands } = pick(random, groups)
  return randomPause(random, pick(random, bands))
}

function randomRequest(random: Random, id: string, charges: readonly Charge[]): ReservationRequest {
  const longest = Math.max(...charges.flatMap(({ group }) => group.bands.map(({ windowTicks }) => windowTicks)))
  return {
    id,
    isNamed: true,
    ruleSetId: 'set',
    reason: 'ALLOWED',
    charges: charges.map((charge) => (random() < 0.05 ? { ...charge, permits: 0 } : charge)),
    costs: charges.map(() => ({ name: pick(random, costNames), permits: 1 + Math.floor(random() * 2) })),
    names: costNames,
    ttlTicks: 1 + Math.floor(random() * Math.min(2 * longest, 31 * 24 * 3600 * 1_000_000)),
    onExpire: random() < 0.5 ? 'KEEP' : 'REFUND',
  }
}

function randomAmounts(random: Random, groups: readonly BucketGroup[]): Costs {
  const capacities = groups.flatMap(({ bands }) => bands.map(({ capacity }) => capacity))
  const amounts: Record<string, number> = {}
  for (const name of costNames) {
    const max = Math.min(1e9, pick(random, capacities) * (random() < 0.1 ? 3 : 1))
    if (random() < 0.8) amounts[name] = Math.floor(max ** random()) - (random() < 0.2 ? 1 : 0)
  }
  return amounts
}

const refundsOf = (charges: readonly Charge[], { now }: { readonly now: number }): Refund[] =>
  charges
    .filter(({ shadow }) => !shadow)
    .map(({ group, key, permits }) => ({ group, key, permits, grantedAt: group.bands.map(() => now) }))

async function both(
  one: BucketStore,
  other: ReferenceStore,
  act: (store: BucketStore) => Promise<void>,
): Promise<void> {
  await act(one)
  await act(other)
}
