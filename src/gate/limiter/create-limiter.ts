import type { BucketStore, Charge } from '../../core/bucket-store.js'
import { type Clock, checkClock, systemClock, ticks, ticksPerMs } from '../../core/clock.js'
import { checkPermits, keyInvalid } from '../../core/decision/check-request.js'
import { type DecideOptions, RateLimiter } from '../../core/decision/rate-limiter.js'
import { maxWaitTicksOf } from '../../core/decision/snapshot.js'
import type { Decision } from '../../core/decision.js'
import { FluxGateError } from '../../core/errors.js'
import { HoldingLimiter } from '../../core/holds/holding-limiter.js'
import { type Acquired, keepHold } from '../../core/holds/keep-hold.js'
import { checkRange, longestWaitMs } from '../../core/range.js'
import { checkReserveOptions } from '../../core/reservations/check-reservation.js'
import type { Reservation, ReserveOptions, SettledReservation } from '../../core/reservations/reservation.js'
import { ReservingLimiter, reservedCosts } from '../../core/reservations/reserving-limiter.js'
import { type Rule, requestCost } from '../../core/rule.js'
import {
  type Departure,
  defaultMaxConcurrentWaits,
  defaultMaxWaitMs,
  WaitingRoom,
} from '../../core/waiting/waiting-room.js'
import { StoreFailurePolicy } from '../../handlers/store-failure-policy.js'
import type { SingleRuleInput } from '../../rules/schema/input.js'
import { parseRule } from '../../rules/schema/parse-rules.js'
import { memoryStore } from '../../stores/memory/memory-store.js'
import { describeValue } from '../../validation/issues.js'
import type { Kind } from '../../validation/kind.js'
import { abortSignal, anyValue } from '../../validation/kinds.js'
import { checkArgument } from '../../validation/options.js'
import { object } from '../../validation/structures.js'
import { requireGenerations } from '../generations/require-generations.js'
import { lazySharedRedisStore } from '../lazy-redis-store.js'
import { boundedStore, isStore, openStore } from '../open-store.js'
import { decisionReporter } from '../reporting/decision-reporter.js'
import { type ConsumeOptions, checkConsumeOptions, stateFor } from './consume-options.js'
import { type LimiterBans, limiterBans } from './limiter-bans.js'
import { type LimiterOverrides, limiterOverrides } from './limiter-overrides.js'
import { RuleBuckets, ruleSetId } from './rule-buckets.js'

/** Options of `createLimiter`: the fields of a rule, plus the store, the clock and the size of the waiting room. */
export type LimiterOptions = SingleRuleInput & {
  /** The bucket store: `memory` (default), a `redis://` URI, or a `BucketStore`. The limiter closes only stores it opened. */
  readonly store?: string | BucketStore | undefined
  /** Clock of the default memory store and of `wait`, for tests. */
  readonly clock?: Clock | undefined
  /** Maximum number of concurrent `wait` calls that are held; default 100. */
  readonly maxConcurrentWaits?: number | undefined
}

/** Options of `Limiter.wait`. */
export interface WaitOptions {
  /** Permits to take; default 1. */
  readonly permits?: number | undefined
  /** Longest wait in milliseconds; default the rule's `maxWaitMs`, or 5000. */
  readonly maxWaitMs?: number | undefined
  /** Aborts the wait and refunds the permits. */
  readonly signal?: AbortSignal | undefined
}

/** Options of `Limiter.reserve`. */
export type LimiterReserveOptions = Omit<ReserveOptions, 'ruleSetId' | 'costs'>

/** A limiter for a single rule, addressed by key. `permits` defaults to 1 in all methods. */
export interface Limiter {
  /**
   * Takes permits if they are available. A rejection is a decision with `allowed: false`, never an error. 0 permits change
   * nothing and return the current state.
   */
  consume(key: string, permits?: number | ConsumeOptions): Promise<Decision>
  /** Like `consume`, but synchronous. Throws unless the store is in memory. */
  consumeSync(key: string, permits?: number | ConsumeOptions): Decision
  /** Returns the current state of a key, as `consume(key, 0)` does. An unknown key has full buckets. */
  state(key: string): Promise<Decision>
  /** Returns the decision that `consume` would make now, and charges nothing. */
  peek(key: string, permits?: number): Promise<Decision>
  /** Returns permits to a key, never above its capacity. */
  refund(key: string, permits?: number): Promise<void>
  /** Other limits for single keys. Requires `overrides: true`. */
  readonly overrides: LimiterOverrides
  /** Lists, sets and lifts bans of keys. Requires `ban`. */
  readonly bans: LimiterBans
  /** Resets a key, so that its buckets are full. */
  reset(key: string): Promise<void>
  /** Resets all keys of the limiter. Other processes with the same store notice it within a second. */
  resetAll(): Promise<void>
  /**
   * Waits until the permits are available, in the order of the calls; `delayMs` is the actual wait. Resolves at once with a
   * rejection if the wait would exceed `maxWaitMs`. An abort refunds the permits and rejects with the signal's reason.
   */
  wait(key: string, options?: WaitOptions): Promise<Decision>
  /**
   * Occupies a slot of a CONCURRENCY limit until `release()` is called. The hold is renewed automatically until then. Under other
   * algorithms it is `consume`, and `release` has no effect.
   *
   * @example
   * const { decision, release } = await limiter.acquire('tenant:7')
   */
  acquire(key: string, permits?: number): Promise<Acquired>
  /**
   * Calls `fn` while a slot is held, and releases it afterwards, even if `fn` fails. Resolves to the decision, and to the result
   * of `fn` if the decision is allowed. Waits for the delay of the decision first, and with WAIT_FOR_REFILL for a slot.
   */
  run<T>(key: string, fn: (decision: Decision) => T | Promise<T>): Promise<RunResult<T>>
  /** Frees the slots of a decision with a `holdId`. Resolves to false if they have expired or were released before. */
  release(holdId: string): Promise<boolean>
  /** Extends a hold by its `maxHold`, from now. Resolves to false if it has expired or was released. */
  renew(holdId: string): Promise<boolean>
  /**
   * Takes an estimate of permits, which `settle` replaces with the actual number. A call with an `id` that is already known takes
   * nothing and resolves to the first result.
   *
   * @throws FluxGateError `FLUXGATE_RESERVATION_UNSUPPORTED` with LEAKY_BUCKET, CONCURRENCY or LEASED
   * @example
   * const { decision, id } = await limiter.reserve('team:7', { permits: 4000, ttlMs: 60_000 })
   * if (decision.allowed) await limiter.settle(id, 1234)
   */
  reserve(key: string, options: LimiterReserveOptions): Promise<Reservation>
  /**
   * Replaces the estimate of a reservation with the actual number of permits; default the estimate. Further calls return the first
   * result. Rejects with FLUXGATE_RESERVATION_UNKNOWN or FLUXGATE_RESERVATION_EXPIRED.
   */
  settle(id: string, permits?: number): Promise<SettledReservation>
  /** Refunds a reservation completely. Rejects like `settle`. */
  cancel(id: string): Promise<SettledReservation>
  /** Rejects pending `wait` calls, refunds their permits, and closes the store if the limiter opened it. */
  close(): Promise<void>
}

/** The result of `Limiter.run`. */
export type RunResult<T> =
  | {
      /** The decision that allowed the call. Its slots are free again. */
      readonly decision: Decision
      /** True: the function was called. */
      readonly ran: true
      /** The result of the function. */
      readonly result: T
    }
  | {
      /** The rejection. */
      readonly decision: Decision
      /** False: the request was rejected, and the function was not called. */
      readonly ran: false
    }

const limiterOptions: readonly string[] = [
  'permits',
  'ttlMs',
  'id',
  'onExpire',
] satisfies (keyof LimiterReserveOptions)[]

const peeking: DecideOptions = Object.freeze({ peek: true })

/** `permits` and `maxWaitMs` are validated where they are used. */
const waitKind: Kind<WaitOptions> = object(
  {},
  { permits: anyValue, maxWaitMs: anyValue, signal: abortSignal } as Record<keyof WaitOptions, Kind<unknown>>,
  { allowed: '{ permits, maxWaitMs, signal }' },
) as Kind<WaitOptions>

/**
 * Creates a limiter for a single rule.
 *
 * @throws FluxGateError if the rule or an option is invalid
 * @example
 * const limiter = createLimiter({ capacity: 10, window: '1s' })
 * const { allowed, retryAfterMs } = await limiter.consume('user:42')
 */
export function createLimiter(options: LimiterOptions): Limiter {
  const {
    store: storeOption,
    clock = systemClock,
    maxConcurrentWaits = defaultMaxConcurrentWaits,
    ...document
  } = options ?? {}
  const room = new WaitingRoom(checkRange('maxConcurrentWaits', maxConcurrentWaits, 0), checkClock(clock))
  const parsed = parseRule(document)
  // The caller chooses the keys. They are addresses, with overrides for ranges of them, only if the options say so.
  const rule: Rule = document.limitScope === undefined ? { ...parsed, limitScope: 'USER_ID' } : parsed
  // Opened last: if a later step threw, the store would never be closed.
  const store = boundedStore(openStore(storeOption, { clock, openRedis: lazySharedRedisStore }))
  const fallback = new StoreFailurePolicy({ store, localStore: memoryStore({ clock }), room, clock, localShare: 1 })
  const buckets = new RuleBuckets(rule, store)
  const { isShadow } = buckets
  const { maxWaitTicks, policy, shadow } = buckets.charge
  const { generations } = store
  const rates = new RateLimiter(generations === undefined ? store : requireGenerations(store, generations), room, {
    fallback,
  })
  const groupOf = () => buckets.charge.group
  const holding = new HoldingLimiter(rates, { store, localHolds: fallback.holds, room, clock, groupOf })
  const reserving = new ReservingLimiter({ store, clock, scope: `${ruleSetId}\n${rule.id}`, fallback, groupOf })
  const { takesHolds } = buckets.charge.group
  const reporter = decisionReporter()
  const limiter = reporter?.limiter(takesHolds ? holding : rates) ?? (takesHolds ? holding : rates)
  const variants = reporter?.variants(rates) ?? rates
  let closed = false

  /** Validates the arguments. Returns the permits to take. */
  const checkedPermits = (key: string, permits: number): number => {
    if (closed) throw limiterClosed()
    if (typeof key !== 'string' || key === '') throw keyInvalid(key)
    return permits === 1 ? rule.permits : checkPermits(permits) * rule.permits
  }

  const chargeOf = (key: string, permits: number, bands?: unknown): Charge => {
    const group = bands === undefined ? buckets.charge.group : buckets.withBands(bands)
    return {
      group,
      key,
      permits: checkedPermits(key, permits),
      maxWaitTicks,
      policy,
      shadow: isShadow?.(key) ?? shadow,
    }
  }

  const decideWith = (key: string, options: ConsumeOptions): Decision | Promise<Decision> => {
    const { variant } = checkConsumeOptions(options)
    if (takesHolds && (variant ?? options.bands) !== undefined) throw notForHolds()
    if (variant === 'PARTIAL' && buckets.charge.group.ban !== undefined) throw notForBans()
    const { permits = 1, bands } = options
    const charge = chargeOf(key, permits, bands)
    if (charge.permits === 0) return stateFor(variant, limiter.decide(ruleSetId, [charge], peeking))
    return variant === undefined
      ? limiter.decide(ruleSetId, [charge])
      : variants.decideVariant(ruleSetId, charge, variant)
  }

  const decide = (key: string, permits: number, options?: DecideOptions): Decision | Promise<Decision> =>
    limiter.decide(ruleSetId, [chargeOf(key, permits)], permits === 0 ? peeking : options)

  // Synchronous calls share one charge, which no store keeps. Saves 9 % of the CPU time of `consumeSync` with a single key.
  const shared = { group: buckets.charge.group, key: '', permits: 0, maxWaitTicks, policy, shadow }
  const sharedCharges: readonly Charge[] = [shared]
  const canShare = isShadow === undefined && !takesHolds
  // A synchronous call cannot wait for a slot.
  const syncOptions = { waitForSlot: false }

  /** Decides. `left` resolves to the time at which a delayed request is released, or to undefined if it was not delayed. */
  const enter = async (
    charge: Charge,
    signal?: AbortSignal,
  ): Promise<{ readonly decision: Decision; readonly left: Promise<number> | undefined }> => {
    let left: Promise<number> | undefined
    let leave: ((how: Departure) => void) | undefined
    const decision = await limiter.decide(ruleSetId, [charge], {
      signal,
      onLeave: (how) => leave?.(how),
      onEnter: () => {
        left = new Promise((resolve, reject) => {
          leave = (how) => {
            if (how === 'ABORTED') reject(signal?.reason)
            else if (how === 'CLOSED') reject(closedWhileWaiting())
            // The time of release, not the later time at which the caller's promise resolves.
            else resolve(ticks(clock))
          }
        })
        left.catch(() => {})
      },
    })
    return { decision, left }
  }

  const openBuckets = async (): Promise<void> => {
    if (closed) throw limiterClosed()
    if (!buckets.isOpen) await buckets.open()
  }

  return {
    consumeSync(key, permits = 1) {
      if (store.chargeSync === undefined) throw syncUnsupported()
      if (typeof permits === 'object') return decideWith(key, permits) as Decision
      if (!canShare || permits === 0) return decide(key, permits, syncOptions) as Decision
      shared.permits = checkedPermits(key, permits)
      shared.key = key
      return limiter.decide(ruleSetId, sharedCharges) as Decision
    },
    async consume(key, permits = 1) {
      if (!buckets.isOpen) await buckets.open()
      return typeof permits === 'object' ? decideWith(key, permits) : decide(key, permits)
    },
    async state(key) {
      if (!buckets.isOpen) await buckets.open()
      return decide(key, 0)
    },
    async peek(key, permits = 1) {
      if (!buckets.isOpen) await buckets.open()
      return limiter.decide(ruleSetId, [chargeOf(key, permits)], peeking)
    },
    async refund(key, permits = 1) {
      if (!buckets.isOpen) await buckets.open()
      await rates.refund([chargeOf(key, permits)])
    },
    overrides: limiterOverrides({ rule, store, clock, open: openBuckets }),
    bans: limiterBans({ rule, store, groupOf, open: openBuckets }),
    async reset(key) {
      if (!buckets.isOpen) await buckets.open()
      await store.reset(chargeOf(key, 1).group, key)
    },
    async resetAll() {
      if (closed) throw limiterClosed()
      if (!buckets.isOpen) await buckets.open()
      await buckets.resetAll()
    },
    async wait(key, options = {}) {
      if (!buckets.isOpen) await buckets.open()
      const { permits = 1, maxWaitMs, signal } = checkArgument('options', options, waitKind)
      if (permits === 0) return decide(key, 0)
      const longest = maxWaitMs ?? rule.maxWaitMs ?? defaultMaxWaitMs
      const charge: Charge = {
        ...chargeOf(key, permits),
        maxWaitTicks: maxWaitTicksOf(checkRange('maxWaitMs', longest, 0, longestWaitMs)),
        policy: 'WAIT_FOR_REFILL',
      }
      const startedAt = ticks(clock)
      const { decision, left } = await enter(charge, signal)
      const releasedAt = await left
      if (releasedAt === undefined && (!takesHolds || !decision.allowed)) return decision
      return { ...decision, delayMs: Math.max(0, (releasedAt ?? ticks(clock)) - startedAt) / ticksPerMs }
    },
    async acquire(key, permits = 1) {
      if (!buckets.isOpen) await buckets.open()
      return keepHold(holding, await decide(key, permits))
    },
    async run(key, fn) {
      if (typeof fn !== 'function') throw notCallable(fn)
      if (!buckets.isOpen) await buckets.open()
      const { decision, left } = await enter(chargeOf(key, 1))
      // Keeps its slot during the delay.
      const { release } = keepHold(holding, decision)
      if (!decision.allowed) return { decision, ran: false }
      try {
        await left
        return { decision, ran: true, result: await fn(decision) }
      } finally {
        // A hold that could not be released expires.
        await release().catch(() => {})
      }
    },
    async release(holdId) {
      if (closed) throw limiterClosed()
      return holding.release(holdId)
    },
    async renew(holdId) {
      if (closed) throw limiterClosed()
      return holding.renew(holdId)
    },
    async reserve(key, options) {
      if (!buckets.isOpen) await buckets.open()
      const terms = checkReserveOptions(options, limiterOptions)
      const charges = [chargeOf(key, options.permits ?? 1)]
      const costs = [{ name: requestCost, permits: rule.permits }]
      return reserving.reserve({ ...terms, ruleSetId, reason: 'ALLOWED', charges, costs, names: reservedCosts() })
    },
    async settle(id, permits) {
      if (closed) throw limiterClosed()
      return reserving.settle(id, { permits })
    },
    async cancel(id) {
      if (closed) throw limiterClosed()
      return reserving.cancel(id)
    },
    async close() {
      closed = true
      holding.close()
      room.close()
      buckets.close()
      if (!isStore(storeOption)) await store.close()
    },
  }
}

const syncUnsupported = (): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_SYNC_UNSUPPORTED',
    'consumeSync() needs a store in this process; this store is reached over a network. Use consume().',
  )

const notForHolds = (): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    'options of consume() must not have bands, partial or force with CONCURRENCY, whose slots are released. Use a rate limit.',
  )

const notForBans = (): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    'options of consume() must not have partial if the rule has a ban. Remove one of them.',
  )

const notCallable = (fn: unknown): FluxGateError =>
  new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `fn must be a function; received ${describeValue(fn)}.`)

const closedWhileWaiting = (): FluxGateError =>
  new FluxGateError('FLUXGATE_CLOSED', 'The limiter was closed while this call was waiting.')

const limiterClosed = (): FluxGateError =>
  new FluxGateError('FLUXGATE_CLOSED', 'The limiter is closed. Create a new one.')
