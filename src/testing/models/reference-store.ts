import { definitionOf } from '../../algorithms/index.js'
import { algorithmTraits } from '../../core/algorithm-traits.js'
import type { BandResult, BucketGroup, BucketStore, Charge, ChargeResult, Refund } from '../../core/bucket-store.js'
import { type Clock, ticks } from '../../core/clock.js'
import type { Hold } from '../../core/holds/hold-storage.js'
import type { AlgorithmName, Band } from '../../core/rule.js'
import { BanModel } from './ban-model.js'
import { intervalModel, leakyModel, tokenModel } from './bucket-models.js'
import { holdModel } from './hold-model.js'
import { larger, type Model, type ModelResult } from './model.js'
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

/** A bucket, the definition under which it was written if its group keeps the used fraction, and the shares of a full bucket. */
interface Entry {
  readonly model: Model
  readonly definition: Band | undefined
  readonly shares: bigint
}

/** A bucket prepared for an operation: its band in shares, and the shares of a permit. */
interface Opened {
  readonly bucket: Model
  readonly band: Band
  readonly perPermit: bigint
}

/** A bucket store of the reference models, with which other stores are compared. It is slow, and its memory is unbounded. */
export function referenceStore({ clock, reserves = false }: ReferenceOptions): ReferenceStore {
  const buckets = new Map<string, Entry>()
  const name = (group: BucketGroup, band: Band, key: string): string =>
    JSON.stringify([group.ruleSetId, group.ruleId, group.generation, band.label, band.algorithm, band.refill, key])

  /** `converts` is false for operations that change nothing, such as a peek. */
  const open = (group: BucketGroup, band: Band, key: string, now: bigint, converts = true): Opened => {
    const id = name(group, band, key)
    const definition = definitionOf(band, group.definitions)
    const unused = (): Entry => ({
      model: reserves ? reservable(band) : newModel(band),
      definition,
      shares: BigInt(definition?.capacity ?? 1),
    })
    const known = buckets.get(id) ?? unused()
    const entry = definition === undefined ? known : converted(known, definition, band, now, unused)
    // A capacity of 0 uses nothing, so that the bucket under the old definition stays.
    const isStored = converts && (entry === known || definition?.capacity !== 0)
    if (isStored || !buckets.has(id)) buckets.set(id, entry)
    const perPermit = definition === undefined || entry.shares === 0n ? 1n : entry.shares / BigInt(definition.capacity)
    const opened = { bucket: entry.model, band: inShares(band, perPermit), perPermit }
    opened.bucket.touch(opened.band, now)
    return opened
  }

  const modelsOf = (holds: readonly Hold[]) => {
    const now = BigInt(ticks(clock))
    return holds.flatMap(({ group, key, hold }) =>
      group.bands
        .filter(({ algorithm }) => algorithmTraits[algorithm].takesHolds)
        .map((band) => ({ ...open(group, band, key, now), hold, now })),
    )
  }

  const charge = async (charges: readonly Charge[], peek: boolean): Promise<ChargeResult> => {
    const now = BigInt(ticks(clock))
    const outcomes = charges.map((charge) =>
      outcomeOf(charge, (band) => open(charge.group, band, charge.key, now, !peek), now),
    )
    const banned = charges.map((charge) => bans.untilOf(charge, now))
    const granted =
      outcomes.every(({ charge, allowed }) => allowed || charge.shadow) && banned.every((until) => until === 0n)
    const bands = outcomes.flatMap(({ charge, buckets, allowed }) =>
      buckets.map(({ opened, answer }) => {
        if (!granted || !allowed || charge.permits === 0)
          return resultOf(opened, now, charge.permits === 0 ? free : { ...answer, delay: 0 })
        const { band, perPermit } = opened
        const bucket = peek ? opened.bucket.copy() : opened.bucket
        bucket.touch(band, now)
        bucket.charge(band, BigInt(charge.permits) * perPermit, now, answer.grantedAt, charge.hold)
        return resultOf({ bucket, band, perPermit }, now, answer)
      }),
    )
    const isRejected = outcomes.map(({ allowed }) => !allowed)
    if (!granted) bans.apply(charges, bands, { now, banned, isRejected, peek })
    return { granted, now: Number(now), bands }
  }

  const force = (given: Charge): Promise<ChargeResult> => {
    const now = BigInt(ticks(clock))
    for (const ofRule of given.group.bands) {
      const { bucket, band, perPermit } = open(given.group, ofRule, given.key, now)
      bucket.force(band, BigInt(given.permits) * perPermit, now)
    }
    return charge([{ ...given, permits: 0 }], true)
  }

  const takePart = async (given: Charge): Promise<ChargeResult> => {
    const unit = given.group.permits
    const { bands } = await charge([{ ...given, permits: 0 }], true)
    const available = Math.min(given.permits, ...bands.map(({ remaining }) => remaining))
    const taken = Math.max(unit, Math.floor(available / unit) * unit)
    return { ...(await charge([{ ...given, permits: taken }], false)), taken }
  }

  const bans = new BanModel(() => BigInt(ticks(clock)))
  const reservations = new ReferenceReservations({
    clock,
    charge: (charges, peek) => charge(charges, peek),
    modelOf: (group, band, key) => open(group, band, key, BigInt(ticks(clock))).bucket as ReservableModel,
    hasModel: (group, band, key) => buckets.has(name(group, band, key)),
  })

  return {
    charge,
    ...(reserves && { reservations }),
    variants: { charge: (given, variant) => (variant === 'FORCE' ? force(given) : takePart(given)) },
    async refund(refunds: readonly Refund[]) {
      const now = BigInt(ticks(clock))
      for (const { group, key, permits, grantedAt, hold } of refunds)
        for (const [index, ofRule] of group.bands.entries()) {
          if (!buckets.has(name(group, ofRule, key))) continue
          const at = grantedAt?.[index] === undefined ? now : BigInt(Math.ceil(grantedAt[index]))
          const { bucket, band, perPermit } = open(group, ofRule, key, now)
          if (hold !== undefined && bucket.release !== undefined) bucket.release(hold, now)
          else bucket.refund(band, BigInt(permits) * perPermit, now, at)
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
        const { model, definition, shares } = buckets.get(name(group, band, key)) ?? {}
        const copy = model?.copy()
        const written =
          definition === undefined ? band : inShares(definition, shares ? shares / BigInt(definition.capacity) : 1n)
        copy?.touch(written, now)
        return copy?.isUnused(written, now) ?? true
      })
    },
    bans,
    async reset(group, key) {
      bans.reset(group, key)
      for (const band of group.bands) buckets.delete(name(group, band, key))
    },
    async close() {
      buckets.clear()
    },
  }
}

/** The answer for 0 permits, which are always granted. */
const free: ModelResult = { allowed: true, grantedAt: 0n, delay: 0, retryAfter: 0n }

function outcomeOf(charge: Charge, open: (band: Band) => Opened, now: bigint) {
  const buckets = charge.group.bands.map((ofRule) => {
    const opened = open(ofRule)
    const { bucket, band, perPermit } = opened
    const permits = BigInt(charge.permits) * perPermit
    return { opened, answer: bucket.peek(band, permits, now, BigInt(charge.maxWaitTicks)) }
  })
  return { charge, buckets, allowed: charge.permits === 0 || buckets.every(({ answer }) => answer.allowed) }
}

function resultOf({ bucket, band, perPermit }: Opened, now: bigint, answer: ModelResult): BandResult {
  return {
    allowed: answer.allowed,
    delay: answer.delay,
    retryAfter: answer.retryAfter === undefined ? Number.POSITIVE_INFINITY : Number(answer.retryAfter),
    remaining: Number(bucket.remaining(band, now) / perPermit),
    resetAt: Number(bucket.resetAt(band, now)),
  }
}

const inShares = (band: Band, perPermit: bigint): Band => ({
  ...band,
  capacity: band.capacity * Number(perPermit),
  refillTokens: band.refillTokens * Number(perPermit),
})

/** The bucket after it is used under `definition`: the same used fraction, in shares. A permit is a whole number of shares. */
function converted(entry: Entry, definition: Band, band: Band, now: bigint, unused: () => Entry): Entry {
  const { model, definition: before = definition, shares } = entry
  const isSame = JSON.stringify(terms(before)) === JSON.stringify(terms(definition))
  const isOtherCalendar = JSON.stringify(before.calendar) !== JSON.stringify(definition.calendar)
  if (shares === 0n || definition.capacity === 0 || isOtherCalendar) return isSame ? entry : unused()
  if (isSame && shares === BigInt(definition.capacity)) return entry
  const target = sharesOf(shares, definition, band)
  const copy = model.copy()
  const from = inShares(before, shares / BigInt(before.capacity))
  const current = model.copy()
  current.touch(from, now)
  if (current.isUnused(from, now)) return unused()
  if (target === shares && isSame) return entry
  if (copy.scale === undefined) throw new TypeError('Models that keep reservations do not support changed definitions.')
  copy.scale({ from, to: definition, shares: target }, now)
  return { model: copy, definition, shares: target }
}

const terms = ({ capacity, refillTokens, windowTicks, calendar }: Band) => [
  capacity,
  refillTokens,
  calendar ?? windowTicks,
]

/** The least common multiple of the shares and the capacity, or the largest multiple of the capacity that a bucket can have. */
function sharesOf(shares: bigint, { capacity, refillTokens, algorithm }: Band, call: Band): bigint {
  const most = algorithm === 'SLIDING_WINDOW_LOG' ? 2n ** 23n - 1n : 2n ** 38n
  const [permits, largest] = [BigInt(capacity), BigInt(Math.max(refillTokens, call.capacity, call.refillTokens))]
  let perPermit = shares / greatestCommonDivisor(shares, permits)
  if (perPermit * permits > most) perPermit = most / permits
  if (perPermit * largest > most) perPermit = larger(1n, most / largest)
  return perPermit * permits
}

const greatestCommonDivisor = (a: bigint, b: bigint): bigint => (b === 0n ? a : greatestCommonDivisor(b, a % b))
