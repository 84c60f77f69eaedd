import type { Charge } from '../../core/bucket-store.js'
import { checkClock, systemClock, ticks, ticksPerMs } from '../../core/clock.js'
import { checkPermits, keyInvalid } from '../../core/decision/check-request.js'
import { type DecideOptions, RateLimiter } from '../../core/decision/rate-limiter.js'
import { maxWaitTicksOf } from '../../core/decision/snapshot.js'
import type { Decision } from '../../core/decision.js'
import { FluxGateError } from '../../core/errors.js'
import { HoldingLimiter } from '../../core/holds/holding-limiter.js'
import { keepHold } from '../../core/holds/keep-hold.js'
import { checkRange, longestWaitMs } from '../../core/range.js'
import { checkReserveOptions } from '../../core/reservations/check-reservation.js'
import { ReservingLimiter, reservedCosts } from '../../core/reservations/reserving-limiter.js'
import { type Rule, requestCost } from '../../core/rule.js'
import { defaultMaxConcurrentWaits, defaultMaxWaitMs, WaitingRoom } from '../../core/waiting/waiting-room.js'
import { StoreFailurePolicy } from '../../handlers/store-failure-policy.js'
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
import { limiterBans } from './bans.js'
import { type ConsumeOptions, checkConsumeOptions, stateFor } from './consume-options.js'
import { decideAndEnter } from './decide-and-enter.js'
import type { Limiter, LimiterOptions, LimiterReserveOptions, WaitOptions } from './limiter.js'
import { limiterOverrides } from './overrides.js'
import { RuleBuckets, ruleSetId } from './rule-buckets.js'

export type { Limiter, LimiterOptions, LimiterReserveOptions, RunResult, WaitOptions } from './limiter.js'

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

  /** Not `async`: a promise for the promise of a remote decision would take three more turns of the microtask queue. */
  const consumeOpen = (key: string, permits: number | ConsumeOptions): Promise<Decision> => {
    try {
      return Promise.resolve(typeof permits === 'object' ? decideWith(key, permits) : decide(key, permits))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  const enter = (charge: Charge, signal?: AbortSignal) => decideAndEnter(limiter, clock, charge, signal)

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
    consume(key, permits = 1) {
      return buckets.isOpen ? consumeOpen(key, permits) : buckets.open().then(() => consumeOpen(key, permits))
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

const limiterClosed = (): FluxGateError =>
  new FluxGateError('FLUXGATE_CLOSED', 'The limiter is closed. Create a new one.')
