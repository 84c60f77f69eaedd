import { algorithmTraits } from '../../core/algorithm-traits.js'
import type { BandResult, BucketGroup, BucketStore, Charge, ChargeResult, Refund } from '../../core/bucket-store.js'
import { type Clock, ticks } from '../../core/clock.js'
import type { Hold } from '../../core/holds/hold-storage.js'
import type { AlgorithmName, Band } from '../../core/rule.js'
import { intervalModel, leakyModel, tokenModel } from './bucket-models.js'
import { holdModel } from './hold-model.js'
import type { Model, ModelResult } from './model.js'
import { ReferenceReservations } from './reference-reservations.js'
import { type ReservableModel, replayedTokenModel, reservableModel } from './reservation-models.js'
import { fixedWindowModel, slidingCounterModel, slidingLogModel } from './window-models.js'

const models: Record<AlgorithmName, () => Model> = {
  TOKEN_BUCKET: tokenModel,
  LEAKY_BUCKET: leakyModel,
  FIXED_WINDOW: fixedWindowModel,
  SLIDING_WINDOW_LOG: slidingLogModel,
  SLIDING_WINDOW_COUNTER: slidingCounterModel,
  CONCURRENCY: holdModel,
}

const newModel = ({ algorithm, refill }: Band): Model => (refill === 'INTERVAL' ? intervalModel() : models[algorithm]())

/** A bucket store that also reports which buckets are unused. */
export interface ReferenceStore extends BucketStore {
  /** Per band, true if the bucket is equivalent to an unused one. */
  spent(group: BucketGroup, key: string): boolean[]
}

interface ReferenceOptions {
  readonly clock: Clock
  /** True for models that keep reservations. They cannot wait, and their clock must not step back. */
  readonly reserves?: boolean
}

const reservable = (band: Band): ReservableModel =>
  band.algorithm === 'TOKEN_BUCKET' && band.refill === 'STEADY' ? replayedTokenModel() : reservableModel(newModel(band))

/** A bucket store of the reference models, with which other stores are compared. It is slow, and its memory is unbounded. */
export function referenceStore({ clock, reserves = false }: ReferenceOptions): ReferenceStore {
  const buckets = new Map<string, Model>()
  const name = (group: BucketGroup, band: Band, key: string): string =>
    JSON.stringify([group.ruleSetId, group.ruleId, group.generation, band.label, band.algorithm, band.refill, key])

  const model = (group: BucketGroup, band: Band, key: string, now: bigint): Model => {
    const id = name(group, band, key)
    const bucket = buckets.get(id) ?? (reserves ? reservable(band) : newModel(band))
    buckets.set(id, bucket)
    bucket.touch(band, now)
    return bucket
  }

  const modelsOf = (holds: readonly Hold[]) => {
    const now = BigInt(ticks(clock))
    return holds.flatMap(({ group, key, hold }) =>
      group.bands
        .filter(({ algorithm }) => algorithmTraits[algorithm].takesHolds)
        .map((band) => ({ bucket: model(group, band, key, now), band, hold, now })),
    )
  }

  const charge = async (charges: readonly Charge[], peek: boolean): Promise<ChargeResult> => {
    const now = BigInt(ticks(clock))
    const outcomes = charges.map((charge) => outcomeOf(charge, model, now))
    const granted = outcomes.every(({ charge, allowed }) => allowed || charge.shadow)
    const bands = outcomes.flatMap(({ charge, buckets, allowed }) =>
      buckets.map(({ band, bucket, answer }) => {
        if (!granted || !allowed || charge.permits === 0)
          return resultOf(bucket, band, now, charge.permits === 0 ? free : { ...answer, delay: 0 })
        const charged = peek ? bucket.copy() : bucket
        charged.touch(band, now)
        charged.charge(band, BigInt(charge.permits), now, answer.grantedAt, charge.hold)
        return resultOf(charged, band, now, answer)
      }),
    )
    return { granted, now: Number(now), bands }
  }

  const force = (given: Charge): Promise<ChargeResult> => {
    const now = BigInt(ticks(clock))
    for (const band of given.group.bands)
      model(given.group, band, given.key, now).force(band, BigInt(given.permits), now)
    return charge([{ ...given, permits: 0 }], true)
  }

  const takePart = async (given: Charge): Promise<ChargeResult> => {
    const unit = given.group.permits
    const { bands } = await charge([{ ...given, permits: 0 }], true)
    const available = Math.min(given.permits, ...bands.map(({ remaining }) => remaining))
    const taken = Math.max(unit, Math.floor(available / unit) * unit)
    return { ...(await charge([{ ...given, permits: taken }], false)), taken }
  }

  const reservations = new ReferenceReservations({
    clock,
    charge: (charges, peek) => charge(charges, peek),
    modelOf: (group, band, key) => model(group, band, key, BigInt(ticks(clock))) as ReservableModel,
    hasModel: (group, band, key) => buckets.has(name(group, band, key)),
  })

  return {
    charge,
    ...(reserves && { reservations }),
    variants: { charge: (given, variant) => (variant === 'FORCE' ? force(given) : takePart(given)) },
    async refund(refunds: readonly Refund[]) {
      const now = BigInt(ticks(clock))
      for (const { group, key, permits, grantedAt, hold } of refunds)
        for (const [index, band] of group.bands.entries()) {
          if (!buckets.has(name(group, band, key))) continue
          const at = grantedAt?.[index] === undefined ? now : BigInt(Math.ceil(grantedAt[index]))
          const bucket = model(group, band, key, now)
          if (hold !== undefined && bucket.release !== undefined) bucket.release(hold, now)
          else bucket.refund(band, BigInt(permits), now, at)
        }
    },
    holds: {
      async release(holds) {
        return modelsOf(holds)
          .map(({ bucket, hold, now }) => bucket.release?.(hold, now) ?? false)
          .includes(true)
      },
      async renew(holds) {
        return !modelsOf(holds)
          .map(({ bucket, band, hold, now }) => bucket.renew?.(band, hold, now) ?? true)
          .includes(false)
      },
    },
    spent(group, key) {
      const now = BigInt(ticks(clock))
      return group.bands.map((band) => {
        const copy = buckets.get(name(group, band, key))?.copy()
        copy?.touch(band, now)
        return copy?.isUnused(band, now) ?? true
      })
    },
    async reset(group, key) {
      for (const band of group.bands) buckets.delete(name(group, band, key))
    },
    async close() {
      buckets.clear()
    },
  }
}

/** The answer for 0 permits, which are always granted. */
const free: ModelResult = { allowed: true, grantedAt: 0n, delay: 0, retryAfter: 0n }

type FindModel = (group: BucketGroup, band: Band, key: string, now: bigint) => Model

function outcomeOf(charge: Charge, model: FindModel, now: bigint) {
  const buckets = charge.group.bands.map((band) => {
    const bucket = model(charge.group, band, charge.key, now)
    return { band, bucket, answer: bucket.peek(band, BigInt(charge.permits), now, BigInt(charge.maxWaitTicks)) }
  })
  return { charge, buckets, allowed: charge.permits === 0 || buckets.every(({ answer }) => answer.allowed) }
}

function resultOf(bucket: Model, band: Band, now: bigint, answer: ModelResult): BandResult {
  return {
    allowed: answer.allowed,
    delay: answer.delay,
    retryAfter: answer.retryAfter === undefined ? Number.POSITIVE_INFINITY : Number(answer.retryAfter),
    remaining: Number(bucket.remaining(band, now)),
    resetAt: Number(bucket.resetAt(band, now)),
  }
}
