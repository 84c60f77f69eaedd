import type { BucketGroup, BucketStore, Charge } from '../bucket-store.js'
import { type Clock, ticksPerMs } from '../clock.js'
import type { DecideOptions, RateLimiter } from '../decision/rate-limiter.js'
import type { Decision } from '../decision.js'
import { FluxGateError } from '../errors.js'
import { ExpiringIds } from '../scheduling/expiring-ids.js'
import type { WaitingRoom } from '../waiting/waiting-room.js'
import type { HoldId, HoldStorage } from './hold-storage.js'
import { decodeHold, encodeHold, type HoldToken } from './hold-token.js'
import type { HoldHandler } from './keep-hold.js'
import { newHoldId } from './new-hold-id.js'
import { HoldQueues, type QueuedCheck } from './waiting-queues.js'

export interface HoldingLimiterOptions {
  readonly store: Pick<BucketStore, 'holds' | 'chargeSync'>
  /** The holds that were taken in this process while the store failed. */
  readonly localHolds: HoldStorage
  readonly room: WaitingRoom
  readonly clock: Clock
  /** The current group of a rule; undefined if there is no such rule any more. */
  readonly groupOf: (ruleSetId: string | null, ruleId: string) => BucketGroup | undefined
}

/** Decides under rules with the algorithm CONCURRENCY: takes a hold, reports its id, and waits for a release where the rule waits. */
export class HoldingLimiter implements HoldHandler {
  readonly #limiter: RateLimiter
  readonly #options: HoldingLimiterOptions
  readonly #queues: HoldQueues
  /** True if other processes take holds too. The store then keeps the order of all waiting requests. */
  readonly #isShared: boolean
  /** The holds of this process by their random ids, which are shorter than `holdId`. */
  readonly #held = new ExpiringIds()

  /** The number of requests that could wait. */
  #arrivals = 0

  constructor(limiter: RateLimiter, options: HoldingLimiterOptions) {
    this.#limiter = limiter
    this.#options = options
    this.#isShared = options.store.chargeSync === undefined
    this.#queues = new HoldQueues(options.clock, options.room, this.#isShared)
  }

  /** The number of holds that this process has taken and that are neither released nor expired. */
  get heldCount(): number {
    return this.#held.count(this.#options.clock.now())
  }

  decide(
    ruleSetId: string | null,
    charges: readonly Charge[],
    options: DecideOptions = {},
  ): Decision | Promise<Decision> {
    if (options.peek) return this.#limiter.decide(ruleSetId, charges, options)
    if (this.#options.store.holds === undefined) throw unsupported()
    const hold = newHoldId()
    const waiting = options.waitForSlot === false ? [] : charges.filter(isWaiting)
    const isQueued = this.#isShared && waiting.length > 0
    const holding = charges.map((charge) => (charge.group.takesHolds ? { ...charge, hold, isQueued } : charge))
    const attempt = (): Decision | Promise<Decision> => this.#attempt(ruleSetId, holding, hold, options)
    if (waiting.length === 0) return attempt()
    const buckets = waiting.map(({ group, key }) => bucketName(ruleSetId, group.ruleId, key))
    const check = this.#queuedCheck(holding, waiting, hold, attempt, options)
    // A shared store must know of every waiting request, so each of them asks it once, even if others of this process wait.
    const busy = this.#isShared ? undefined : this.#queues.busy(buckets)
    if (busy !== undefined) return this.#queues.wait(check(busy)) ?? attempt()
    const first = attempt()
    const settle = (decision: Decision): Decision | Promise<Decision> => {
      if (!endsWithRelease(decision, waiting)) return decision
      const allowed = this.#queues.wait(check(buckets[0] as string), decision)
      if (allowed === undefined) this.#leaveQueue(holding, hold)
      return allowed ?? decision
    }
    return first instanceof Promise ? first.then(settle) : settle(first)
  }

  async release(holdId: string): Promise<boolean> {
    const token = decodeHold(holdId)
    this.#held.delete(nameOf(token.hold))
    const isReleased = await this.#storageOf(token).release(this.#holdsOf(token))
    if (isReleased)
      this.#queues.released(token.buckets.map(({ ruleId, key }) => bucketName(token.ruleSetId, ruleId, key)))
    return isReleased
  }

  async renew(holdId: string): Promise<boolean> {
    const token = decodeHold(holdId)
    const holds = this.#holdsOf(token)
    const isHeld = holds.length > 0 && (await this.#storageOf(token).renew(holds))
    const name = nameOf(token.hold)
    if (this.#held.delete(name) && isHeld) this.#held.add(name, this.#options.clock.now() + token.maxHoldMs)
    return isHeld
  }

  /** Ends all waits. */
  close(): void {
    this.#queues.close()
  }

  #attempt(
    ruleSetId: string | null,
    holding: readonly Charge[],
    hold: HoldId,
    options: DecideOptions,
  ): Decision | Promise<Decision> {
    const decided = this.#limiter.decide(ruleSetId, holding, options)
    const withHold = (decision: Decision): Decision => this.#withHold(decision, holding, hold)
    return decided instanceof Promise ? decided.then(withHold) : withHold(decided)
  }

  /** Adds the hold id to an allowed decision that has taken holds. */
  #withHold(decision: Decision, charges: readonly Charge[], hold: HoldId): Decision {
    const taken = decision.allowed ? charges.filter((charge) => hasTaken(decision, charge)) : []
    if (taken.length === 0) return decision
    const { ruleSetId, degraded: isLocal } = decision
    const buckets = taken.map(({ group, key }) => ({ ruleId: group.ruleId, key }))
    const maxHoldMs = Math.min(...taken.map(({ group }) => maxHoldTicks(group))) / ticksPerMs
    this.#held.add(nameOf(hold), this.#options.clock.now() + maxHoldMs)
    return { ...decision, holdId: encodeHold({ hold, isLocal, ruleSetId, maxHoldMs, buckets }) }
  }

  #queuedCheck(
    charges: readonly Charge[],
    waiting: readonly Charge[],
    hold: HoldId,
    attempt: QueuedCheck['attempt'],
    { signal }: DecideOptions,
  ): (bucket: string) => QueuedCheck {
    const number = this.#arrivals++
    return (bucket) => ({
      bucket,
      number,
      maxWaitMs: Math.max(...waiting.map(({ maxWaitTicks }) => maxWaitTicks)) / ticksPerMs,
      signal: typeof signal === 'function' ? signal() : signal,
      attempt,
      isWaiting: (decision) => endsWithRelease(decision, waiting),
      abandon: (decision) => this.#abandon(charges, decision),
      left: () => this.#leaveQueue(charges, hold),
    })
  }

  /** Undoes a decision that was made after its request had left. */
  #abandon(charges: readonly Charge[], { allowed, degraded, holdId }: Decision): void {
    if (!allowed || holdId === undefined) return
    const { hold } = decodeHold(holdId)
    this.release(holdId).catch(() => {})
    const rates = charges.map(({ group, key, permits }) => ({ group, key, permits, hold }))
    if (!degraded) this.#limiter.refund(rates).catch(() => {})
  }

  /** Removes the request from the queue of a shared store. If the call fails, the store drops it after a second. */
  #leaveQueue(charges: readonly Charge[], hold: HoldId): void {
    if (!this.#isShared) return
    const holds = charges.flatMap(({ group, key }) => (group.takesHolds ? [{ group, key, hold }] : []))
    this.#options.store.holds?.release(holds).catch(() => {})
  }

  #storageOf({ isLocal }: HoldToken): HoldStorage {
    const { store, localHolds } = this.#options
    if (store.holds === undefined) throw unsupported()
    return isLocal ? localHolds : store.holds
  }

  /** A rule that was removed or reset since has no holds any more. */
  #holdsOf({ hold, ruleSetId, buckets }: HoldToken) {
    return buckets.flatMap(({ ruleId, key }) => {
      const group = this.#options.groupOf(ruleSetId, ruleId)
      return group === undefined ? [] : [{ group, key, hold }]
    })
  }
}

const bucketName = (ruleSetId: string | null, ruleId: string, key: string): string =>
  JSON.stringify([ruleSetId, ruleId, key])

const nameOf = ({ high, low }: HoldId): string => `${high}:${low}`

const isWaiting = ({ group, maxWaitTicks, shadow }: Charge): boolean =>
  group.takesHolds === true && maxWaitTicks > 0 && !shadow

/** True if only slots of rules that wait are missing. */
const endsWithRelease = ({ allowed, reason, bands }: Decision, waiting: readonly Charge[]): boolean =>
  !allowed &&
  reason === 'LIMITED' &&
  bands.every(
    (band) =>
      band.allowed ||
      band.shadow ||
      (band.windowMs === 0 && waiting.some(({ group, key }) => group.ruleId === band.ruleId && key === band.key)),
  )

/** A shadow rule that denies takes no hold, nor does a key whose override has no CONCURRENCY band. */
function hasTaken({ bands }: Decision, { group, key, hold }: Charge): boolean {
  if (hold === undefined) return false
  const own = bands.filter((band) => band.ruleId === group.ruleId && band.key === key)
  return own.some(({ windowMs }) => windowMs === 0) && own.every(({ allowed }) => allowed)
}

const maxHoldTicks = ({ bands }: BucketGroup): number =>
  Math.min(...bands.filter(({ algorithm }) => algorithm === 'CONCURRENCY').map(({ windowTicks }) => windowTicks))

const unsupported = (): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    'The bucket store does not support the algorithm CONCURRENCY: it has no holds. Use memoryStore or redisStore.',
  )
