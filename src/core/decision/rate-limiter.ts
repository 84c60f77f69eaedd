import { algorithmTraits } from '../algorithm-traits.js'
import {
  type BandResult,
  type BucketStore,
  type ChargeResult,
  copyResult,
  type Demand,
  type Refund,
} from '../bucket-store.js'
import { ticksPerMs, ticksUp } from '../clock.js'
import type { Decision } from '../decision.js'
import { FluxGateError, isStoreTrouble, isUnsent } from '../errors.js'
import { boundedKey } from '../keys/bounded-key.js'
import type { Band } from '../rule.js'
import { noPlace } from '../waiting/no-place.js'
import type { Slot } from '../waiting/slot.js'
import type { Departure, WaitingRoom } from '../waiting/waiting-room.js'
import { composeDecision } from './compose-decision.js'

export interface DecideOptions {
  readonly peek?: boolean | undefined
  /** Refunds a delayed request if it aborts before the request is released. A function is called only for delayed requests. */
  readonly signal?: AbortSignal | (() => AbortSignal) | undefined
  /**
   * Called with the store's time of the decision, in epoch milliseconds. Results are pooled, so it runs last: the callback may
   * start another decision.
   */
  readonly onDecided?: ((atMs: number) => void) | undefined
  /** Called when the request enters the waiting room, before `decide` returns. */
  readonly onEnter?: (() => void) | undefined
  /** Called when the request leaves the waiting room. A request with this callback waits in order of arrival. */
  readonly onLeave?: ((how: Departure) => void) | undefined
}

/** Decides while the store fails. */
export interface StoreFailureFallback {
  decide(ruleSetId: string | null, demands: readonly Demand[], options: DecideOptions): Decision
}

export interface RateLimiterOptions {
  /** `degraded` of every decision; default false. */
  readonly degraded?: boolean
  /** Without one, errors of the store are thrown. */
  readonly fallback?: StoreFailureFallback | undefined
  /** Called for every reply of a remote store. */
  readonly onStoreAnswer?: (() => void) | undefined
  /** Called for every failure of a remote store. */
  readonly onStoreError?: ((error: unknown) => void) | undefined
}

const noOptions: DecideOptions = Object.freeze({})

/** Numbers the limiters of this process: several may share a waiting room, each with buckets of its own. */
let limiterCount = 0

/**
 * Turns charges into a Decision: one call to the store, and a slot in the waiting room for a delayed request. A delayed request
 * is already charged; if it leaves before its time, its permits are refunded.
 */
export class RateLimiter {
  readonly #store: BucketStore
  readonly #room: WaitingRoom
  readonly #options: RateLimiterOptions
  readonly #degraded: boolean
  readonly #number = limiterCount++

  constructor(store: BucketStore, room: WaitingRoom, options: RateLimiterOptions = {}) {
    this.#store = store
    this.#room = room
    this.#options = options
    this.#degraded = options.degraded ?? false
  }

  /** Returns at once if the store has `chargeSync`; it then throws what the promise would reject with. */
  decide(
    ruleSetId: string | null,
    demands: readonly Demand[],
    options: DecideOptions = noOptions,
  ): Decision | Promise<Decision> {
    const store = this.#store
    if (store.chargeSync === undefined) return this.#decideRemotely(ruleSetId, demands, options)
    throwIfAborted(options)
    if (isHeld(demands, options) && this.#room.isFull) return this.#decideWithoutRoom(ruleSetId, demands, options)
    return this.#settle(ruleSetId, demands, store.chargeSync(demands, options.peek === true), options)
  }

  async #decideRemotely(
    ruleSetId: string | null,
    demands: readonly Demand[],
    options: DecideOptions,
  ): Promise<Decision> {
    throwIfAborted(options)
    const { fallback, onStoreError } = this.#options
    try {
      return await this.#ask(ruleSetId, demands, options)
    } catch (error) {
      if (fallback === undefined) throw error
      if (isStoreTrouble(error)) onStoreError?.(error)
      return fallback.decide(ruleSetId, demands, options)
    }
  }

  async #ask(ruleSetId: string | null, demands: readonly Demand[], options: DecideOptions): Promise<Decision> {
    const isCrowded = isHeld(demands, options) && this.#room.isFull
    const claims = isCrowded ? demands.map(impatient) : demands
    const result = await this.#store.charge(claims, options.peek === true)
    if (!result.isUnasked) this.#options.onStoreAnswer?.()
    if (isCrowded && !result.granted) return this.#noPlace(ruleSetId, demands, result, result, options)
    // Checked again: other requests may have taken the last slot while the store was asked.
    const lacksPlace = isDelayed(claims, result) && isHeld(demands, options) && this.#room.isFull
    if (!lacksPlace) {
      const decision = this.#settle(ruleSetId, claims, result, options)
      if (!result.isUnasked) this.#room.storeReplied()
      return decision
    }
    if (!options.peek) await this.#room.turnAway(this.#slotsOf(claims, result))
    return this.#noPlace(ruleSetId, demands, result, await this.#store.charge(claims.map(asIs), true), options)
  }

  /** Peeks first, because a request that would be delayed must not be charged. */
  #decideWithoutRoom(ruleSetId: string | null, demands: readonly Demand[], options: DecideOptions): Decision {
    const charge = (claims: readonly Demand[], peek: boolean): ChargeResult =>
      (this.#store.chargeSync as NonNullable<BucketStore['chargeSync']>).call(this.#store, claims, peek)
    const claims = demands.map(impatient)
    const look = copyResult(claims, charge(claims, true))
    if (!look.granted) return this.#noPlace(ruleSetId, demands, look, look, options)
    return isDelayed(claims, look)
      ? this.#noPlace(ruleSetId, demands, look, charge(claims.map(asIs), true), options)
      : this.#settle(ruleSetId, claims, charge(claims, options.peek === true), options)
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    return this.#store.refund(refunds)
  }

  #settle(
    ruleSetId: string | null,
    demands: readonly Demand[],
    result: ChargeResult,
    options: DecideOptions,
  ): Decision {
    const { now } = result
    const decision = composeDecision(ruleSetId, demands, result, this.#degraded)
    if (decision.delayMs > 0 || options.onLeave !== undefined) this.#seatIfHeld(decision, demands, result, options)
    options.onDecided?.(now / ticksPerMs)
    return decision
  }

  /** Gives the request a slot in the waiting room if it needs one. */
  #seatIfHeld(decision: Decision, demands: readonly Demand[], result: ChargeResult, options: DecideOptions): void {
    if (decision.delayMs === 0 && this.#room.size === 0) return
    if (options.peek || !decision.allowed || !isHeld(demands, options)) return
    // Taken from the result now: a store may reuse it for the next decision.
    const slots = this.#slotsOf(demands, result)
    // A request without a delay passes, unless others already wait for one of its buckets.
    if (decision.delayMs > 0 || this.#room.hasQueue(slots)) this.#seat(slots, options)
  }

  #seat(slots: readonly Slot[], options: DecideOptions): void {
    options.onEnter?.()
    this.#room.enter({
      slots,
      isHeld: options.onLeave !== undefined,
      signal: typeof options.signal === 'function' ? options.signal() : options.signal,
      leave: (how) => options.onLeave?.(how),
    })
  }

  /** What a granted decision was charged, per bucket, with what gives it back. */
  #slotsOf(demands: readonly Demand[], result: ChargeResult): Slot[] {
    return chargesOf(demands, result).map(({ demand: { group, shadow }, bands, refund }) => ({
      bucket: JSON.stringify([this.#number, group.ruleSetId, group.ruleId, group.generation, boundedKey(refund.key)]),
      permits: refund.permits,
      grantedAt: refund.grantedAt,
      delay: shadow ? 0 : Math.max(...bands.map(({ delay }) => delay)),
      isOrdered: group.bands.some(({ algorithm }) => algorithmTraits[algorithm].shrinksFromEnd),
      giveBack: () => this.#giveBack(refund),
    }))
  }

  /** Resolves to false if the store has certainly not executed the refund. One per call: parts of a call can fail alone. */
  async #giveBack(refund: Refund): Promise<boolean> {
    try {
      await this.#store.refund([refund])
      return true
    } catch (error) {
      return !isUnexecuted(error)
    }
  }

  /** Refuses what would have to be held when there is no place to hold it. `standing` is the bands as they are. */
  #noPlace(
    ruleSetId: string | null,
    demands: readonly Demand[],
    look: ChargeResult,
    standing: ChargeResult,
    options: DecideOptions,
  ): Decision {
    const refusal = noPlace(demands, look, standing, ticksUp(this.#room.nextFreeMs))
    const decision = composeDecision(ruleSetId, demands, refusal, this.#degraded)
    options.onDecided?.(refusal.now / ticksPerMs)
    return decision
  }
}

/** A signal behind a function is requested only for delayed requests, so it cannot have aborted yet. */
export function throwIfAborted({ signal }: Pick<DecideOptions, 'signal'>): void {
  if (typeof signal === 'object') signal.throwIfAborted()
}

/**
 * True if this process waits for a delay: because the rule waits for refills, or because the caller can leave. Otherwise the
 * delay of a leaky bucket is left to the caller. Shadow rules never wait.
 */
function isHeld(demands: readonly Demand[], { signal, onLeave }: DecideOptions): boolean {
  if (signal !== undefined || onLeave !== undefined) return true
  for (let i = 0; i < demands.length; i++) {
    const { patience, shadow } = demands[i] as Demand
    if (patience > 0 && !shadow) return true
  }
  return false
}

/** With no place to wait in, nobody is asked to wait. */
const impatient = (demand: Demand): Demand => (demand.patience === 0 ? demand : { ...demand, patience: 0 })

/** Asks for nothing, to see a bucket as it stands. */
const asIs = (demand: Demand): Demand => ({ ...demand, permits: 0 })

function isDelayed(demands: readonly Demand[], { granted, bands, applied = demands }: ChargeResult): boolean {
  let index = 0
  return (
    granted && applied.some(({ group, shadow }) => group.bands.some(() => (bands[index++]?.delay ?? 0) > 0 && !shadow))
  )
}

/** True if the store has certainly not executed the call that failed with this error. */
const isUnexecuted = (error: unknown): boolean =>
  isUnsent(error) || (error instanceof FluxGateError && (error.code === 'FLUXGATE_STORE_OPEN' || error.isUnexecuted))

/** One bucket that a granted decision was charged to: what its bands said, and what undoes the charge. */
interface Charge {
  readonly demand: Demand
  readonly bands: readonly BandResult[]
  readonly refund: Refund & { readonly grantedAt: readonly number[] }
}

function chargesOf(
  demands: readonly Demand[],
  { now, decidedAt, bands, applied = demands }: ChargeResult,
): readonly Charge[] {
  const charges: Charge[] = []
  let first = 0
  for (const [index, demand] of applied.entries()) {
    const { group, key, permits } = demand
    const said = bands.slice(first, first + group.bands.length)
    first += group.bands.length
    // A shadow that was refused was not charged.
    if (group.listed !== undefined || said.some(({ allowed }) => !allowed)) continue
    const at = decidedAt?.[index] ?? now
    charges.push({
      demand,
      bands: said,
      refund: { group, key, permits, grantedAt: said.map(({ delay }) => at + delay) },
    })
  }
  return charges
}

/** A refund that is sent now is executed within this time, even by a server that does not reply for a while. */
const longestRefundTicks = 60_000 * ticksPerMs

/**
 * What undoes a granted decision that was answered too late, as far as that is safe. A token bucket that would have been
 * full without the charge has been refilled because of it, and other requests may have used that: giving the permits back
 * would admit too many. They come back by refill, within a minute.
 */
export const lateRefundsOf = (demands: readonly Demand[], result: ChargeResult): Refund[] =>
  chargesOf(demands, result)
    .filter(({ demand: { group, permits }, bands }) =>
      group.bands.every((band, i) => staysBelowFull(band, permits, bands[i] as BandResult, result.now)),
    )
    .map(({ refund }) => refund)

function staysBelowFull(band: Band, permits: number, { delay, resetAt }: BandResult, now: number): boolean {
  const { isRefilled, isQueue } = algorithmTraits[band.algorithm]
  if (!isRefilled || isQueue || delay > 0) return true
  const fullAt = resetAt - (permits * band.windowTicks) / band.refillTokens
  return fullAt - now > longestRefundTicks
}

/** What undoes a granted decision. */
export const refundsOf = (demands: readonly Demand[], result: ChargeResult): Refund[] =>
  chargesOf(demands, result).map(({ refund }) => refund)
