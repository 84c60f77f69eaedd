import { type BucketStore, type Demand, demandOf } from '../../core/bucket-store.js'
import { type Clock, checkClock, systemClock, ticks, ticksPerMs } from '../../core/clock.js'
import { checkKey, checkPermits } from '../../core/decision/check-request.js'
import { RateLimiter } from '../../core/decision/rate-limiter.js'
import { compileRule, patienceOf } from '../../core/decision/snapshot.js'
import type { Decision } from '../../core/decision.js'
import { FluxGateError } from '../../core/errors.js'
import { checkRange, longestWaitMs } from '../../core/range.js'
import {
  type Departure,
  defaultMaxConcurrentWaits,
  defaultMaxWaitMs,
  WaitingRoom,
} from '../../core/waiting/waiting-room.js'
import { WithoutStore } from '../../handlers/without-store.js'
import type { LoneRuleInput } from '../../rules/schema/input.js'
import { parseRule } from '../../rules/schema/schema.js'
import { memoryStore } from '../../stores/memory/memory-store.js'
import { redisStore } from '../../stores/redis/redis-store.js'
import { boundedStore, isStore, openStore } from '../open-store.js'

export interface LimiterOptions extends LoneRuleInput {
  /** Where buckets live: in this process unless said otherwise, in Redis by its URI, or a store. */
  readonly store?: string | BucketStore | undefined
  /** For tests; also the clock of the memory store that is made when none is given. */
  readonly clock?: Clock | undefined
  /** How many callers may be held by `wait` at once; default 100. */
  readonly maxConcurrentWaits?: number | undefined
}

export interface WaitOptions {
  readonly permits?: number | undefined
  /** The longest wait; default the rule's `maxWaitMs`, or 5 s. */
  readonly maxWaitMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface Limiter {
  consume(key: string, permits?: number): Promise<Decision>
  /** As `consume`, at once; only with a store that lives in this process. */
  consumeSync(key: string, permits?: number): Decision
  /** The decision that would be made now; charges nothing. */
  peek(key: string, permits?: number): Promise<Decision>
  /** Gives permits back, never above capacity. */
  refund(key: string, permits?: number): Promise<void>
  /** Forgets a key: its buckets are full again. */
  reset(key: string): Promise<void>
  /**
   * Resolves when the caller may go on, in the order of asking; `delayMs` says how long it was held. Resolves at once with
   * a refusal if that would take longer than `maxWaitMs`. An abort gives the permits back and rejects with its reason.
   */
  wait(key: string, options?: WaitOptions): Promise<Decision>
  /** Sends those who wait away, with their permits given back, and closes a store that was made here. */
  close(): Promise<void>
}

const ruleSetId = 'limiter'

/** One rule, asked by key: rate limiting in three lines. */
export function createLimiter(options: LimiterOptions): Limiter {
  const {
    store: given,
    clock = systemClock,
    maxConcurrentWaits = defaultMaxConcurrentWaits,
    ...document
  } = options ?? {}
  const room = new WaitingRoom(checkRange('maxConcurrentWaits', maxConcurrentWaits, 0), checkClock(clock))
  const { rule, claim } = compileRule(ruleSetId, parseRule(document), {
    maxWaitMs: defaultMaxWaitMs,
    resetBucketsOnReload: true,
    resets: () => 0,
  })
  // Opened when nothing else can be mistaken: nobody would close it.
  const store = boundedStore(openStore(given, { clock, openRedis: redisStore }))
  const fallback = new WithoutStore({ store, localStore: memoryStore({ clock }), room, clock, localShare: 1 })
  const limiter = new RateLimiter(store, room, { fallback })
  let closed = false

  const demand = (key: string, permits: number): Demand => {
    if (closed) throw limiterClosed()
    return demandOf(claim, checkKey(key), checkPermits(permits) * rule.permits)
  }
  const consumeSync = (key: string, permits = 1): Decision => {
    if (store.chargeSync === undefined) throw syncUnsupported()
    return limiter.decide(ruleSetId, [demand(key, permits)]) as Decision
  }

  return {
    consumeSync,
    async consume(key, permits = 1) {
      return limiter.decide(ruleSetId, [demand(key, permits)])
    },
    async peek(key, permits = 1) {
      return limiter.decide(ruleSetId, [demand(key, permits)], { peek: true })
    },
    async refund(key, permits = 1) {
      const { group, permits: total } = demand(key, permits)
      await limiter.refund([{ group, key, permits: total }])
    },
    async reset(key) {
      await store.reset(demand(key, 1).group, key)
    },
    async wait(key, { permits = 1, maxWaitMs, signal } = {}) {
      const longest = maxWaitMs ?? rule.maxWaitMs ?? defaultMaxWaitMs
      const patience = patienceOf(checkRange('maxWaitMs', longest, 0, longestWaitMs))
      const claim: Demand = { ...demand(key, permits), patience, policy: 'WAIT_FOR_REFILL' }
      const askedAt = ticks(clock)
      // The time of leaving, not of when the caller gets to hear of it.
      let leave: ((departure: { readonly how: Departure; readonly at: number }) => void) | undefined
      let left: Promise<{ readonly how: Departure; readonly at: number }> | undefined
      const decision = await limiter.decide(ruleSetId, [claim], {
        signal,
        onLeave: (how) => leave?.({ how, at: ticks(clock) }),
        onEnter: () => {
          left = new Promise((resolve) => {
            leave = resolve
          })
        },
      })
      // Who was not held takes this step as well: by a shorter way it would overtake those who were let go just before it.
      const departure = await left
      if (departure === undefined) return decision
      const { how, at } = departure
      if (how === 'ABORTED') throw signal?.reason
      if (how === 'CLOSED') throw new FluxGateError('FLUXGATE_CLOSED', 'The limiter was closed while a caller waited.')
      return { ...decision, delayMs: Math.max(0, at - askedAt) / ticksPerMs }
    },
    async close() {
      closed = true
      room.close()
      if (!isStore(given)) await store.close()
    },
  }
}

const syncUnsupported = (): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_SYNC_UNSUPPORTED',
    'consumeSync() needs a store in this process; this store is reached over a network. Use consume().',
  )

const limiterClosed = (): FluxGateError =>
  new FluxGateError('FLUXGATE_CLOSED', 'This limiter was closed. Create another one.')
