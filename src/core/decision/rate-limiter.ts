import { algorithmTraits } from '../algorithm-traits.js'
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
} from '../bucket-store.js'
import { ticksPerMs, ticksUp } from '../clock.js'
import type { Decision } from '../decision.js'
import { FluxGateError, isUnsent } from '../errors.js'
import { boundedKey } from '../keys/bounded-key.js'
import type { Band } from '../rule.js'
import { noPlace } from '../waiting/no-place.js'
import type { Slot } from '../waiting/slot.js'
import type { Departure, WaitingRoom } from '../waiting/waiting-room.js'
import { composeDecision, composeOne } from './compose-decision.js'

export interface DecideOptions {
  readonly peek?: boolean | undefined
  /** If it aborts before a delayed request's time has come, the permits are given back. A function is asked only then. */
  readonly signal?: AbortSignal | (() => AbortSignal) | undefined
  /** Told when it was decided, by the clock of the store. Comes last: who is told may ask again, and results are used again. */
  readonly onDecided?: ((atMs: number) => void) | undefined
  /** Called when the request enters the waiting room, before `decide` answers. */
  readonly onEnter?: (() => void) | undefined
  /** Called when it leaves the waiting room, by whichever way. Who gives it waits to be told, and keeps its place in line. */
  readonly onLeave?: ((how: Departure) => void) | undefined
}

export interface RateLimiterOptions {
  /** What decisions say of themselves. */
  readonly degraded?: boolean
  /** Told whenever a store over a network has answered. */
  readonly onStoreAnswer?: (() => void) | undefined
}

const noOptions: DecideOptions = Object.freeze({})

/** Numbers the limiters of this process: several may share a waiting room, each with buckets of its own. */
let limiterCount = 0

/**
 * Demands in, Decision out: one call to the store, and a place in the waiting room for those who are delayed. Delayed
 * requests hold their permits already; who does not stay until its time gives them back.
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
    demands: readonly Demand[],
    options: DecideOptions = noOptions,
  ): Promise<Decision> {
    if (this.#store.chargeSync !== undefined) return this.decideSync(ruleSetId, demands, options)
    throwIfAborted(options)
    const isCrowded = this.#isCrowded(demands, options)
    const claims = isCrowded ? demands.map(impatient) : demands
    const result = await this.#store.charge(claims, options.peek === true)
    if (!result.isUnasked) this.#onStoreAnswer?.()
    if (isCrowded && !result.granted) return this.#noPlace(ruleSetId, demands, result, result, options)
    // Asked again: others may have taken the last place while the store was asked.
    const lacksPlace = isDelayed(claims, result) && this.#isCrowded(demands, options)
    if (!lacksPlace) {
      const decision = this.#settle(ruleSetId, claims, result, options)
      if (!result.isUnasked) this.#room.storeReplied()
      return decision
    }
    if (!options.peek) await this.#room.turnAway(this.#slotsOf(claims, result))
    return this.#noPlace(ruleSetId, demands, result, await this.#store.charge(claims.map(asIs), true), options)
  }

  decideSync(ruleSetId: string | null, demands: readonly Demand[], options: DecideOptions = noOptions): Decision {
    const first = demands[0] as Demand
    const store = this.#store
    if (demands.length > 1 || !isPlain(first) || options.peek || store.chargeOne === undefined || this.#room.isFull)
      return this.#decideAll(ruleSetId, demands, options)
    throwIfAborted(options)
    const result = store.chargeOne(first, first.key, first.permits)
    const { now } = result
    const decision = composeOne(ruleSetId, first, first.key, result, this.#degraded)
    // Asked here already, because nearly nobody needs a place.
    if (decision.delayMs > 0 || options.onLeave !== undefined) this.#seatIfHeld(decision, demands, result, options)
    options.onDecided?.(now / ticksPerMs)
    return decision
  }

  /** The most frequent decision: one rule whose claim is plain. Makes nothing but the Decision. */
  decideOne(
    ruleSetId: string | null,
    claim: Claim,
    key: string,
    permits: number,
    options: Pick<DecideOptions, 'onDecided'> = noOptions,
  ): Decision {
    const result = this.#store.chargeOne?.(claim, key, permits)
    if (result === undefined) {
      const onDecided = (atMs: number): void => options.onDecided?.(atMs)
      return this.#decideAll(ruleSetId, [demandOf(claim, key, permits)], { onDecided })
    }
    const { now } = result
    const decision = composeOne(ruleSetId, claim, key, result, this.#degraded)
    options.onDecided?.(now / ticksPerMs)
    return decision
  }

  #decideAll(ruleSetId: string | null, demands: readonly Demand[], options: DecideOptions): Decision {
    const store = this.#store
    if (store.chargeSync === undefined)
      throw new FluxGateError(
        'FLUXGATE_SYNC_UNSUPPORTED',
        'This store answers over a network, so there is no answer without waiting. Use consume() instead of consumeSync().',
      )
    throwIfAborted(options)
    if (!this.#isCrowded(demands, options))
      return this.#settle(ruleSetId, demands, store.chargeSync(demands, options.peek === true), options)
    const claims = demands.map(impatient)
    const look = copyResult(claims, store.chargeSync(claims, true))
    if (!look.granted) return this.#noPlace(ruleSetId, demands, look, look, options)
    return isDelayed(claims, look)
      ? this.#noPlace(ruleSetId, demands, look, store.chargeSync(claims.map(asIs), true), options)
      : this.#settle(ruleSetId, claims, store.chargeSync(claims, options.peek === true), options)
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    return this.#store.refund(refunds)
  }

  /** Whether this request might have to be held, and there is no place for it. */
  #isCrowded(demands: readonly Demand[], options: DecideOptions): boolean {
    return this.#room.isFull && isHeld(demands, options)
  }

  #settle(
    ruleSetId: string | null,
    demands: readonly Demand[],
    result: ChargeResult,
    options: DecideOptions,
  ): Decision {
    const { now } = result
    const decision = composeDecision(ruleSetId, demands, result, this.#degraded)
    this.#seatIfHeld(decision, demands, result, options)
    options.onDecided?.(now / ticksPerMs)
    return decision
  }

  /** Gives the request a place in the waiting room if it needs one. */
  #seatIfHeld(decision: Decision, demands: readonly Demand[], result: ChargeResult, options: DecideOptions): void {
    if (decision.delayMs === 0 && (options.onLeave === undefined || this.#room.size === 0)) return
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

/** A signal that has not been asked for yet has not aborted. */
export const isAborted = ({ signal }: Pick<DecideOptions, 'signal'>): boolean =>
  typeof signal === 'object' && signal.aborted

export function throwIfAborted({ signal }: Pick<DecideOptions, 'signal'>): void {
  if (typeof signal === 'object') signal.throwIfAborted()
}

/**
 * Whether a delay is waited for here: by a caller that asked to wait, or one that may still leave. A delay that a leaky
 * bucket gives to anybody else is the caller's own business, and a shadow holds nobody.
 */
const isHeld = (demands: readonly Demand[], { signal, onLeave }: DecideOptions): boolean =>
  signal !== undefined || onLeave !== undefined || demands.some(({ patience, shadow }) => patience > 0 && !shadow)

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
