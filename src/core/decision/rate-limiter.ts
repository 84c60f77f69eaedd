import { algorithmTraits } from '../algorithm-traits.js'
import {
  type BandResult,
  type BucketStore,
  type Charge,
  type ChargeResult,
  type ChargeVariant,
  copyResult,
  type Refund,
} from '../bucket-store.js'
import { ticksPerMs, ticksUp } from '../clock.js'
import type { Decision } from '../decision.js'
import { FluxGateError, isStoreFailure, isUnsent } from '../errors.js'
import type { CheckOptions } from '../handler.js'
import { boundedKey } from '../keys/bounded-key.js'
import type { Band } from '../rule.js'
import { rejectForFullRoom } from '../waiting/full-room.js'
import type { Slot } from '../waiting/slot.js'
import type { WaitingRoom } from '../waiting/waiting-room.js'
import { composeDecision } from './compose-decision.js'
import { composeVariant, variantUnsupported } from './variant-decision.js'

/** The options of a check that remain once its charges are known. A request with `onLeave` waits in order of arrival. */
export interface DecideOptions extends Omit<CheckOptions, 'ruleSetId' | 'permits' | 'costs'> {
  /** Set for a charge that is forced or partial. */
  readonly variant?: ChargeVariant | undefined
}

/** Decides while the store fails. */
export interface StoreFailureFallback {
  /** `error` is the failure of the store. */
  decide(ruleSetId: string | null, charges: readonly Charge[], options: DecideOptions, error: unknown): Decision
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

/** Numbers the limiters of this process, because several limiters with their own buckets may share a waiting room. */
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

  /**
   * Returns at once if the store has `chargeSync`; it then throws what the promise would reject with. Also returns at once if a
   * remote store can decide without a call, and the caller needs neither a signal nor its turn in the waiting room.
   */
  decide(
    ruleSetId: string | null,
    charges: readonly Charge[],
    options: DecideOptions = noOptions,
  ): Decision | Promise<Decision> {
    const store = this.#store
    if (store.chargeSync === undefined) {
      const isPlain = !options.peek && typeof options.signal !== 'object' && options.onLeave === undefined
      const local = isPlain ? store.chargeLocally?.(charges) : undefined
      return local === undefined
        ? this.#decideRemotely(ruleSetId, charges, options)
        : this.#complete(ruleSetId, charges, local, options)
    }
    if (typeof options.signal === 'object') options.signal.throwIfAborted()
    if (isHeld(charges, options) && this.#room.isFull) return this.#decideWithoutRoom(ruleSetId, charges, options)
    return this.#complete(ruleSetId, charges, store.chargeSync(charges, options.peek === true), options)
  }

  /** Decides about a forced or partial charge of one rule. It never waits. Returns at once if the store is synchronous. */
  decideVariant(
    ruleSetId: string | null,
    given: Charge,
    variant: ChargeVariant,
    options: DecideOptions = noOptions,
  ): Decision | Promise<Decision> {
    const { variants } = this.#store
    if (variants === undefined) throw variantUnsupported(variant)
    const charge = withoutWaiting(given)
    const compose = (result: ChargeResult): Decision =>
      composeVariant(ruleSetId, charge, variant, result, this.#degraded)
    if (variants.chargeSync !== undefined) return compose(variants.chargeSync(charge, variant))
    const { fallback, onStoreAnswer, onStoreError } = this.#options
    return variants.charge(charge, variant).then(
      (result) => {
        onStoreAnswer?.()
        return compose(result)
      },
      (error: unknown) => {
        if (fallback === undefined) throw error
        if (isStoreFailure(error)) onStoreError?.(error)
        return fallback.decide(ruleSetId, [charge], { ...options, variant }, error)
      },
    )
  }

  #decideRemotely(ruleSetId: string | null, charges: readonly Charge[], options: DecideOptions): Promise<Decision> {
    return isHeld(charges, options)
      ? this.#decideOrWait(ruleSetId, charges, options)
      : this.#decideAtOnce(ruleSetId, charges, options)
  }

  /** Decides about a request that cannot wait. Not `async`: suspended frames would be a quarter of what a decision allocates. */
  #decideAtOnce(ruleSetId: string | null, charges: readonly Charge[], options: DecideOptions): Promise<Decision> {
    const fail = (error: unknown): Decision => this.#decideWithoutStore(ruleSetId, charges, options, error)
    const complete = (result: ChargeResult): Decision => {
      try {
        return this.#answered(ruleSetId, charges, result, options)
      } catch (error) {
        return fail(error)
      }
    }
    try {
      return Promise.resolve(this.#store.charge(charges, options.peek === true)).then(complete, fail)
    } catch (error) {
      return Promise.reject(error).catch(fail)
    }
  }

  async #decideOrWait(ruleSetId: string | null, charges: readonly Charge[], options: DecideOptions): Promise<Decision> {
    throwIfAborted(options)
    try {
      return await this.#ask(ruleSetId, charges, options)
    } catch (error) {
      return this.#decideWithoutStore(ruleSetId, charges, options, error)
    }
  }

  #decideWithoutStore(
    ruleSetId: string | null,
    charges: readonly Charge[],
    options: DecideOptions,
    error: unknown,
  ): Decision {
    const { fallback, onStoreError } = this.#options
    if (fallback === undefined) throw error
    if (isStoreFailure(error)) onStoreError?.(error)
    return fallback.decide(ruleSetId, charges, options, error)
  }

  /** Completes a decision about which the store has replied. */
  #answered(
    ruleSetId: string | null,
    charges: readonly Charge[],
    result: ChargeResult,
    options: DecideOptions,
  ): Decision {
    if (!result.fromCache) this.#options.onStoreAnswer?.()
    const decision = this.#complete(ruleSetId, charges, result, options)
    if (!result.fromCache) this.#room.storeReplied()
    return decision
  }

  async #ask(ruleSetId: string | null, charges: readonly Charge[], options: DecideOptions): Promise<Decision> {
    const lacksRoom = this.#lacksRoom(charges, options)
    const tried = lacksRoom ? charges.map(withoutWaiting) : charges
    const result = await this.#store.charge(tried, options.peek === true)
    if (!result.fromCache) this.#options.onStoreAnswer?.()
    if (lacksRoom && !result.granted) return this.#rejectForRoom(ruleSetId, charges, result, result)
    // Checked again, because other requests may have filled the waiting room during the call.
    if (!isDelayed(tried, result) || !this.#lacksRoom(charges, options)) {
      const decision = this.#complete(ruleSetId, tried, result, options)
      if (!result.fromCache) this.#room.storeReplied()
      return decision
    }
    if (!options.peek) await this.#room.turnAway(this.#slotsOf(tried, result))
    const current = await this.#store.charge(tried.map(withoutPermits), true)
    return this.#rejectForRoom(ruleSetId, charges, result, current)
  }

  /** Peeks first, because a request that would be delayed must not be charged. */
  #decideWithoutRoom(ruleSetId: string | null, charges: readonly Charge[], options: DecideOptions): Decision {
    const charge = (tried: readonly Charge[], peek: boolean): ChargeResult =>
      (this.#store.chargeSync as NonNullable<BucketStore['chargeSync']>).call(this.#store, tried, peek)
    const tried = charges.map(withoutWaiting)
    const result = copyResult(tried, charge(tried, true))
    if (!result.granted) return this.#rejectForRoom(ruleSetId, charges, result, result)
    return isDelayed(tried, result)
      ? this.#rejectForRoom(ruleSetId, charges, result, charge(tried.map(withoutPermits), true))
      : this.#complete(ruleSetId, tried, charge(tried, options.peek === true), options)
  }

  refund(refunds: readonly Refund[]): Promise<void> {
    return this.#store.refund(refunds)
  }

  /** True if the request might have to wait and the waiting room is full. */
  #lacksRoom(charges: readonly Charge[], options: DecideOptions): boolean {
    return isHeld(charges, options) && this.#room.isFull
  }

  #complete(
    ruleSetId: string | null,
    charges: readonly Charge[],
    result: ChargeResult,
    options: DecideOptions,
  ): Decision {
    const decision = composeDecision(ruleSetId, charges, result, this.#degraded)
    if (decision.delayMs > 0 || options.onLeave !== undefined) this.#enterIfHeld(decision, charges, result, options)
    return decision
  }

  /** Gives the request a slot in the waiting room if it needs one. */
  #enterIfHeld(decision: Decision, charges: readonly Charge[], result: ChargeResult, options: DecideOptions): void {
    if (decision.delayMs === 0 && this.#room.size === 0) return
    if (options.peek || !decision.allowed || !isHeld(charges, options)) return
    // Taken from the result now: a store may reuse it for the next decision.
    const slots = this.#slotsOf(charges, result)
    // A request without a delay passes, unless others already wait for one of its buckets.
    if (decision.delayMs > 0 || this.#room.hasQueue(slots)) this.#room.hold(slots, options)
  }

  /** The slots that a granted decision was charged to, one per bucket, each with its refund. */
  #slotsOf(charges: readonly Charge[], result: ChargeResult): Slot[] {
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
    charges: readonly Charge[],
    immediate: ChargeResult,
    current: ChargeResult,
  ): Decision {
    const rejection = rejectForFullRoom(charges, immediate, current, ticksUp(this.#room.nextFreeMs))
    return composeDecision(ruleSetId, charges, rejection, this.#degraded)
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
function isHeld(charges: readonly Charge[], options: DecideOptions): boolean {
  for (let i = 0; i < charges.length; i++) {
    const charge = charges[i] as Charge
    if (charge.maxWaitTicks > 0 && !charge.shadow) return true
  }
  return options.signal !== undefined || options.onLeave !== undefined
}

/** The charge that rejects instead of waiting, for a full waiting room. */
const withoutWaiting = (charge: Charge): Charge => (charge.maxWaitTicks === 0 ? charge : { ...charge, maxWaitTicks: 0 })

/** The charge that takes no permits, to read the current state of its buckets. */
const withoutPermits = (charge: Charge): Charge => ({ ...charge, permits: 0 })

function isDelayed(charges: readonly Charge[], { granted, bands, applied = charges }: ChargeResult): boolean {
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
  readonly charge: Charge
  readonly bands: readonly BandResult[]
  readonly refund: Refund & { readonly grantedAt: readonly number[] }
}

function grantedCharges(
  charges: readonly Charge[],
  { now, decidedAt, bands, applied = charges }: ChargeResult,
): readonly GrantedCharge[] {
  const granted: GrantedCharge[] = []
  let first = 0
  for (const [index, charge] of applied.entries()) {
    const { group, key, permits, hold } = charge
    const results = bands.slice(first, first + group.bands.length)
    first += group.bands.length
    // A shadow rule that denies was not charged.
    if (group.listed !== undefined || results.some(({ allowed }) => !allowed)) continue
    const at = decidedAt?.[index] ?? now
    granted.push({
      charge,
      bands: results,
      refund: { group, key, permits, ...(hold && { hold }), grantedAt: results.map(({ delay }) => at + delay) },
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
export const lateRefundsOf = (charges: readonly Charge[], result: ChargeResult): Refund[] =>
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
export const refundsOf = (charges: readonly Charge[], result: ChargeResult): Refund[] =>
  grantedCharges(charges, result).map(({ refund }) => refund)
