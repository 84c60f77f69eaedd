import { type BucketStore, type Demand, demandOf, isPlain } from '../../core/bucket-store.js'
import { type Clock, checkClock, systemClock, ticks, ticksPerMs } from '../../core/clock.js'
import { checkPermits } from '../../core/decision/permits.js'
import { type DecideOptions, isAborted, RateLimiter } from '../../core/decision/rate-limiter.js'
import { compileRule, patienceOf } from '../../core/decision/snapshot.js'
import type { Decision } from '../../core/decision.js'
import { FluxGateError } from '../../core/errors.js'
import { checkKey } from '../../core/keys/check-key.js'
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
  const limiter = new RateLimiter(store, room)
  const withoutStore = new WithoutStore({ store, localStore: memoryStore({ clock }), room, clock, localShare: 1 })
  let closed = false

  const assertOpen = (): void => {
    if (closed) throw limiterClosed()
  }
  const demand = (key: string, permits: number): Demand => {
    assertOpen()
    return demandOf(claim, checkKey(key), checkPermits(permits) * rule.permits)
  }
  const consumePlain = (key: string, permits = 1): Decision => {
    if (closed) throw limiterClosed()
    return limiter.decideOne(ruleSetId, claim, checkKey(key), checkPermits(permits) * rule.permits)
  }
  const consumeSync = isPlain(claim)
    ? consumePlain
    : (key: string, permits = 1): Decision => limiter.decideSync(ruleSetId, [demand(key, permits)])

  /** While the store fails, the rule says what to do. */
  const decide = async (claim: Demand, options: DecideOptions = {}): Promise<Decision> => {
    try {
      return await limiter.decide(ruleSetId, [claim], options)
    } catch (error) {
      if (limiter.isSync || isAborted(options)) throw error
      return withoutStore.decide(ruleSetId, [claim], () => rule.onStoreFailure ?? 'LOCAL', options)
    }
  }

  /** Not async: that would be one more promise around the one that there is. */
  const consume = (key: string, permits = 1): Promise<Decision> => {
    try {
      return decide(demand(key, permits))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  return {
    consumeSync,
    consume: limiter.isSync ? async (key, permits = 1) => consumeSync(key, permits) : consume,
    async peek(key, permits = 1) {
      return decide(demand(key, permits), { peek: true })
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
      const decision = await decide(claim, {
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

const limiterClosed = (): FluxGateError =>
  new FluxGateError('FLUXGATE_CLOSED', 'This limiter was closed. Create another one.')
