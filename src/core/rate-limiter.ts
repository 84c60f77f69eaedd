import { algorithmTraits } from './algorithm-traits.js'
import { boundedKey } from './bounded-key.js'
import {
  type BandResult,
  type BucketStore,
  type ChargeResult,
  type Claim,
  copyResult,
  type Demand,
  demandOf,
  isPlain,
  type Refund,
} from './bucket-store.js'
import { ticksPerMs, ticksUp } from './clock.js'
import { composeDecision, composeOne } from './compose-decision.js'
import type { Decision } from './decision.js'
import { FluxGateError, isUnsent } from './errors.js'
import { noPlace } from './no-place.js'
import type { Band } from './rule.js'
import type { Slot } from './slot.js'
import type { Departure, WaitingRoom } from './waiting-room.js'

export interface DecideOptions {
  readonly peek?: boolean | undefined
  /** Aborting it before the release time of a delayed request refunds the permits. A function is called only for a delayed request. */
  readonly signal?: AbortSignal | (() => AbortSignal) | undefined
  /** Called with the store's timestamp after the decision is complete. Results are pooled, so it must run last: the callback may start another decision. */
  readonly onDecided?: ((atMs: number) => void) | undefined
  /** Called when the request enters the waiting room, before `decide` returns. */
  readonly onEnter?: (() => void) | undefined
  /** Called when the request leaves the waiting room, for any reason. A request with this callback is held and keeps its order. */
  readonly onLeave?: ((how: Departure) => void) | undefined
}

export interface RateLimiterOptions {
  /** The `degraded` flag of all decisions. */
  readonly degraded?: boolean
  /** Called whenever an asynchronous store has replied. */
  readonly onStoreAnswer?: (() => void) | undefined
}

const noOptions: DecideOptions = Object.freeze({})

/** Numbers the limiters of this process, because several limiters with their own buckets may share a waiting room. */
let limiterCount = 0

/**
 * Turns charges into a Decision with one call to the store, and holds delayed requests in the waiting room. Delayed requests
 * have already been charged. If one leaves before its release time, its permits are refunded.
 */
export class RateLimiter {
  readonly #store: BucketStore
  readonly #room: WaitingRoom
  readonly #degraded: boolean
  readonly #onStoreAnswer: (() => void) | undefined
  readonly #number = limiterCount++

  constructor(store: BucketStore, room: WaitingRoom, { degraded = false, onStoreAnswer }: RateLimiterOptions = {}) {
    this.#store = store
    this.#room = room
    this.#degraded = degraded
    this.#onStoreAnswer = onStoreAnswer
  }

  get isSync(): boolean {
    return this.#store.chargeSync !== undefined
  }

  async decide(
    ruleSetId: string | null,
    charges: readonly Demand[],
    options: DecideOptions = noOptions,
  ): Promise<Decision> {
    if (this.#store.chargeSync !== undefined) return this.decideSync(ruleSetId, charges, options)
    throwIfAborted(options)
    const lacksRoom = this.#lacksRoom(charges, options)
    const tried = lacksRoom ? charges.map(withoutWaiting) : charges
    const result = await this.#store.charge(tried, options.peek === true)
    if (!result.isUnasked) this.#onStoreAnswer?.()
    if (lacksRoom && !result.granted) return this.#rejectForRoom(ruleSetId, charges, result, result, options)
    // Checked again, because other requests may have filled the waiting room during the call.
    if (!isDelayed(tried, result) || !this.#lacksRoom(charges, options)) {
      const decision = this.#complete(ruleSetId, tried, result, options)
      if (!result.isUnasked) this.#room.storeReplied()
      return decision
    }
    if (!options.peek) await this.#room.turnAway(this.#slotsOf(tried, result))
    const current = await this.#store.charge(tried.map(withoutPermits), true)
    return this.#rejectForRoom(ruleSetId, charges, result, current, options)
  }

  decideSync(ruleSetId: string | null, charges: readonly Demand[], options: DecideOptions = noOptions): Decision {
    const first = charges[0] as Demand
    const store = this.#store
    if (charges.length > 1 || !isPlain(first) || options.peek || store.chargeOne === undefined || this.#room.isFull)
      return this.#decideAll(ruleSetId, charges, options)
    throwIfAborted(options)
    const result = store.chargeOne(first, first.key, first.permits)
    const { now } = result
    const decision = composeOne(ruleSetId, first, first.key, result, this.#degraded)
    // Checked here to save the call, because very few requests have to wait.
    if (decision.delayMs > 0 || options.onLeave !== undefined) this.#enterIfHeld(decision, charges, result, options)
    options.onDecided?.(now / ticksPerMs)
    return decision
  }

  /** Fast path for a single rule that never waits and has no overrides. Allocates nothing but the Decision. */
  decideOne(
    ruleSetId: string | null,
    ruleCharge: Claim,
    key: string,
    permits: number,
    options: Pick<DecideOptions, 'onDecided'> = noOptions,
  ): Decision {
    const result = this.#store.chargeOne?.(ruleCharge, key, permits)
    if (result === undefined) {
      const onDecided = (atMs: number): void => options.onDecided?.(atMs)
      return this.#decideAll(ruleSetId, [demandOf(ruleCharge, key, permits)], { onDecided })
    }
    const { now } = result
    const decision = composeOne(ruleSetId, ruleCharge, key, result, this.#degraded)
    options.onDecided?.(now / ticksPerMs)
    return decision
  }

  #decideAll(ruleSetId: string | null, charges: readonly Demand[], options: DecideOptions): Decision {
    const store = this.#store
    if (store.chargeSync === undefined)
      throw new FluxGateError(
        'FLUXGATE_SYNC_UNSUPPORTED',
        'consumeSync() needs a store that decides synchronously; this store needs network I/O. Use consume() instead.',
      )
    throwIfAborted(options)
    if (!this.#lacksRoom(charges, options))
      return this.#complete(ruleSetId, charges, store.chargeSync(charges, options.peek === true), options)
    const tried = charges.map(withoutWaiting)
    const immediate = copyResult(tried, store.chargeSync(tried, true))
    if (!immediate.granted) return this.#rejectForRoom(ruleSetId, charges, immediate, immediate, options)
    return isDelayed(tried, immediate)
      ? this.#rejectForRoom(ruleSetId, charges, immediate, store.chargeSync(tried.map(withoutPermits), true), options)
      : this.#complete(ruleSetId, tried, store.chargeSync(tried, options.peek === true), options)
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    return this.#store.refund(refunds)
  }

  /** True if the waiting room is full and this request might have to wait. */
  #lacksRoom(charges: readonly Demand[], options: DecideOptions): boolean {
    return this.#room.isFull && isHeld(charges, options)
  }

  #complete(
    ruleSetId: string | null,
    charges: readonly Demand[],
    result: ChargeResult,
    options: DecideOptions,
  ): Decision {
    const { now } = result
    const decision = composeDecision(ruleSetId, charges, result, this.#degraded)
    this.#enterIfHeld(decision, charges, result, options)
    options.onDecided?.(now / ticksPerMs)
    return decision
  }

  /** Puts the request into the waiting room if it has to wait. */
  #enterIfHeld(decision: Decision, charges: readonly Demand[], result: ChargeResult, options: DecideOptions): void {
    if (decision.delayMs === 0 && (options.onLeave === undefined || this.#room.size === 0)) return
    if (options.peek || !decision.allowed || !isHeld(charges, options)) return
    // Read from the result now, because the store may reuse it for the next decision.
    const slots = this.#slotsOf(charges, result)
    // A request without delay proceeds, unless other requests already wait for one of its buckets.
    if (decision.delayMs > 0 || this.#room.hasQueue(slots)) this.#enterRoom(slots, options)
  }

  #enterRoom(slots: readonly Slot[], options: DecideOptions): void {
    options.onEnter?.()
    this.#room.enter({
      slots,
      isHeld: options.onLeave !== undefined,
      signal: typeof options.signal === 'function' ? options.signal() : options.signal,
      leave: (how) => options.onLeave?.(how),
    })
  }

  /** The slots that a granted decision was charged to, one per bucket, each with its refund. */
  #slotsOf(charges: readonly Demand[], result: ChargeResult): Slot[] {
    return grantedCharges(charges, result).map(({ charge: { group, shadow }, bands, refund }) => ({
      bucket: JSON.stringify([this.#number, group.ruleSetId, group.ruleId, group.generation, boundedKey(refund.key)]),
      permits: refund.permits,
      grantedAt: refund.grantedAt,
      delay: shadow ? 0 : Math.max(...bands.map(({ delay }) => delay)),
      isOrdered: group.bands.some(({ algorithm }) => algorithmTraits[algorithm].shrinksFromEnd),
      giveBack: () => this.#giveBack(refund),
    }))
  }

  /** Resolves to false if the store certainly has not executed the refund. Sends one refund per call, because a call can fail partially. */
  async #giveBack(refund: Refund): Promise<boolean> {
    try {
      await this.#store.refund([refund])
      return true
    } catch (error) {
      return !isUnexecuted(error)
    }
  }

  /** Rejects a request that would have to wait while the waiting room is full. */
  #rejectForRoom(
    ruleSetId: string | null,
    charges: readonly Demand[],
    immediate: ChargeResult,
    current: ChargeResult,
    options: DecideOptions,
  ): Decision {
    const rejection = noPlace(charges, immediate, current, ticksUp(this.#room.nextFreeMs))
    const decision = composeDecision(ruleSetId, charges, rejection, this.#degraded)
    options.onDecided?.(rejection.now / ticksPerMs)
    return decision
  }
}

/** A signal that is still a function has not been created, so it has not aborted. */
export const isAborted = ({ signal }: Pick<DecideOptions, 'signal'>): boolean =>
  typeof signal === 'object' && signal.aborted

export function throwIfAborted({ signal }: Pick<DecideOptions, 'signal'>): void {
  if (typeof signal === 'object') signal.throwIfAborted()
}

/**
 * True if a delayed request waits in the waiting room: its rule waits for a refill, or the caller can still abort. Otherwise
 * the caller itself waits for the delay of a leaky bucket. Shadow rules never make a request wait.
 */
const isHeld = (charges: readonly Demand[], { signal, onLeave }: DecideOptions): boolean =>
  signal !== undefined || onLeave !== undefined || charges.some(({ patience, shadow }) => patience > 0 && !shadow)

/** The charge that rejects instead of waiting, for a full waiting room. */
const withoutWaiting = (charge: Demand): Demand => (charge.patience === 0 ? charge : { ...charge, patience: 0 })

/** The charge that takes no permits, to read the current state of its buckets. */
const withoutPermits = (charge: Demand): Demand => ({ ...charge, permits: 0 })

function isDelayed(charges: readonly Demand[], { granted, bands, applied = charges }: ChargeResult): boolean {
  let index = 0
  return (
    granted && applied.some(({ group, shadow }) => group.bands.some(() => (bands[index++]?.delay ?? 0) > 0 && !shadow))
  )
}

/** True if the store certainly has not executed the call that failed with this error. */
const isUnexecuted = (error: unknown): boolean =>
  isUnsent(error) || (error instanceof FluxGateError && (error.code === 'FLUXGATE_STORE_OPEN' || error.isUnexecuted))

/** A charge that was taken, with the results of its bands and the refund that undoes it. */
interface GrantedCharge {
  readonly charge: Demand
  readonly bands: readonly BandResult[]
  readonly refund: Refund & { readonly grantedAt: readonly number[] }
}

function grantedCharges(
  charges: readonly Demand[],
  { now, decidedAt, bands, applied = charges }: ChargeResult,
): readonly GrantedCharge[] {
  const granted: GrantedCharge[] = []
  let first = 0
  for (const [index, charge] of applied.entries()) {
    const { group, key, permits } = charge
    const results = bands.slice(first, first + group.bands.length)
    first += group.bands.length
    // A shadow rule that denies was not charged.
    if (group.listed !== undefined || results.some(({ allowed }) => !allowed)) continue
    const at = decidedAt?.[index] ?? now
    granted.push({
      charge,
      bands: results,
      refund: { group, key, permits, grantedAt: results.map(({ delay }) => at + delay) },
    })
  }
  return granted
}

/** The longest time until a refund that is sent now is executed, even if the server does not reply for a while. */
const maxRefundTicks = 60_000 * ticksPerMs

/**
 * The refunds of a granted decision that arrived too late, as far as refunding is safe. If a token bucket would be full
 * without the charge, it refilled only because of the charge, and other requests may have used these permits. Refunding them
 * would allow too many requests. They return by refill within a minute.
 */
export const lateRefundsOf = (charges: readonly Demand[], result: ChargeResult): Refund[] =>
  grantedCharges(charges, result)
    .filter(({ charge: { group, permits }, bands }) =>
      group.bands.every((band, i) => staysBelowFull(band, permits, bands[i] as BandResult, result.now)),
    )
    .map(({ refund }) => refund)

function staysBelowFull(band: Band, permits: number, { delay, resetAt }: BandResult, now: number): boolean {
  const { isRefilled, isQueue } = algorithmTraits[band.algorithm]
  if (!isRefilled || isQueue || delay > 0) return true
  const fullAt = resetAt - (permits * band.windowTicks) / band.refillTokens
  return fullAt - now > maxRefundTicks
}

/** The refunds that undo a granted decision. */
export const refundsOf = (charges: readonly Demand[], result: ChargeResult): Refund[] =>
  grantedCharges(charges, result).map(({ refund }) => refund)
