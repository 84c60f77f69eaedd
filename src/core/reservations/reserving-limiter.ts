import { algorithmTraits } from '../algorithm-traits.js'
import type { BucketGroup, BucketStore, Charge } from '../bucket-store.js'
import { type Clock, ticksPerMs } from '../clock.js'
import { composeDecision } from '../decision/compose-decision.js'
import { unmeteredDecision } from '../decision/unmetered-decision.js'
import type { Decision } from '../decision.js'
import { FluxGateError, isStoreFailure } from '../errors.js'
import { type Costs, requestCost } from '../rule.js'
import { ExpiringIds } from '../scheduling/expiring-ids.js'
import { checkReservationId, checkSettleOptions } from './check-reservation.js'
import type { Reservation, ReservationHandler, SettledReservation, SettleOptions } from './reservation.js'
import type {
  ReservationRequest,
  ReservationStorage,
  ReservedState,
  ReserveOutcome,
  SettleOutcome,
} from './reservation-storage.js'

/** Reserves while the store fails. */
export interface ReservationFallback {
  reserve(request: ReservationRequest, error?: unknown): Promise<Decision>
  /** True if the reservation was made while the store failed. */
  has(id: string): boolean
  /** Resolves to undefined if the reservation was not made while the store failed. */
  settle(id: string, amounts: Costs | undefined): Promise<SettleOutcome | undefined>
}

export interface ReservingLimiterOptions {
  readonly store: Pick<BucketStore, 'reservations' | 'chargeSync'>
  readonly clock: Clock
  /** Keeps the ids of several limiters with the same store apart. */
  readonly scope?: string
  readonly fallback: ReservationFallback
  /** The current group of a rule; undefined if there is no such rule any more. */
  readonly groupOf: (ruleSetId: string, ruleId: string) => BucketGroup | undefined
  readonly onStoreAnswer?: (() => void) | undefined
  readonly onStoreError?: ((error: unknown) => void) | undefined
}

/** Makes and settles reservations in a store. */
export class ReservingLimiter implements ReservationHandler {
  readonly #options: ReservingLimiterOptions
  /** The open reservations of this process. */
  readonly #open = new ExpiringIds()

  constructor(options: ReservingLimiterOptions) {
    this.#options = options
  }

  /** The number of reservations that this process has made and that are neither settled, canceled nor expired. */
  get openCount(): number {
    return this.#open.count(this.#options.clock.now())
  }

  async reserve(request: ReservationRequest): Promise<Reservation> {
    const { fallback } = this.#options
    const { id } = request
    checkRules(request.charges)
    const reservations = this.#storage()
    const full = { ...request, id: this.#nameOf(id), charges: request.charges.map(withoutWaiting) }
    const decision = fallback.has(full.id) ? await fallback.reserve(full) : await this.#reserve(reservations, full)
    if (decision.allowed) this.#open.add(id, this.#options.clock.now() + request.ttlTicks / ticksPerMs)
    return { decision, id }
  }

  async #reserve(reservations: ReservationStorage, request: ReservationRequest): Promise<Decision> {
    const { fallback, onStoreAnswer, onStoreError } = this.#options
    let outcome: ReserveOutcome
    try {
      outcome = await reservations.reserve(request)
      onStoreAnswer?.()
    } catch (error) {
      if (error instanceof FluxGateError && error.code === 'FLUXGATE_RESERVATION_UNSUPPORTED') throw error
      if (isStoreFailure(error)) onStoreError?.(error)
      return fallback.reserve(request, error)
    }
    if (outcome === 'FULL') throw tooMany()
    return decisionOf(outcome, false)
  }

  async settle(id: string, actual: SettleOptions = {}): Promise<SettledReservation> {
    return this.#end(checkReservationId(id), checkSettleOptions(actual))
  }

  async cancel(id: string): Promise<SettledReservation> {
    return this.#end(checkReservationId(id), undefined)
  }

  async #end(id: string, amounts: Costs | undefined): Promise<SettledReservation> {
    const { fallback, groupOf, onStoreAnswer, onStoreError } = this.#options
    const name = this.#nameOf(id)
    const currentGroup = (group: BucketGroup): BucketGroup | undefined => {
      const current = groupOf(group.ruleSetId, group.ruleId)
      if (current?.generation !== group.generation) return undefined
      // Permits of an earlier definition are a fraction of its capacity.
      return group.definitions === undefined ? current : group
    }
    const settle = async (): Promise<SettleOutcome> => {
      try {
        const outcome = await this.#storage().settle({ id: name, amounts, currentGroup })
        onStoreAnswer?.()
        return outcome
      } catch (error) {
        if (isStoreFailure(error)) onStoreError?.(error)
        throw error
      }
    }
    const local = await fallback.settle(name, amounts)
    // The call that failed may have reached the store, which then has the reservation too.
    if (local !== undefined) settle().catch(() => {})
    const settled = settledOf(id, local ?? (await settle()), local !== undefined)
    this.#open.delete(id)
    return settled
  }

  #storage(): ReservationStorage {
    const { reservations } = this.#options.store
    if (reservations !== undefined) return reservations
    throw unsupported('The bucket store does not keep reservations. Use memoryStore or redisStore.')
  }

  #nameOf(id: string): string {
    const { scope } = this.#options
    // Ids contain no control characters, so two scopes never have the same name.
    return scope === undefined ? id : `${scope}\n${id}`
  }
}

/** The decision about an estimate, or the state of its buckets after it was settled. */
export function decisionOf({ ruleSetId, reason, charges, result }: ReservedState, degraded: boolean): Decision {
  if (charges.length === 0) return unmeteredDecision(true, reason, result.now / ticksPerMs, { ruleSetId, degraded })
  const isOverridden = charges.some(({ group }) => group.insteadOf !== undefined)
  return composeDecision(ruleSetId, charges, isOverridden ? { ...result, applied: charges } : result, degraded)
}

function settledOf(id: string, outcome: SettleOutcome, degraded: boolean): SettledReservation {
  if (outcome === 'UNKNOWN')
    throw new FluxGateError(
      'FLUXGATE_RESERVATION_UNKNOWN',
      `There is no reservation ${shown(id)}: its request was rejected, it has expired more than a minute ago, or it was made in another store.`,
    )
  if (outcome === 'EXPIRED')
    throw new FluxGateError(
      'FLUXGATE_RESERVATION_EXPIRED',
      `The reservation ${shown(id)} has expired. Reserve with a ttlMs that is longer than the work.`,
    )
  if ('unknownCost' in outcome)
    throw new FluxGateError(
      'FLUXGATE_COST_UNKNOWN',
      `costs.${outcome.unknownCost.slice(0, 128)} was not reserved. The reservation has ${outcome.names.join(', ')}; reserve a cost that is not known yet with 0.`,
    )
  return { id, status: outcome.isCanceled ? 'CANCELED' : 'SETTLED', decision: decisionOf(outcome, degraded) }
}

/** Rejects rules whose charges cannot be replaced later. */
function checkRules(charges: readonly Charge[]): void {
  for (const { group } of charges) {
    const where = `The rule ${shown(group.ruleId)} applies to the request, but`
    const band = group.bands.find(
      ({ algorithm }) => algorithmTraits[algorithm].isQueue || algorithmTraits[algorithm].takesHolds,
    )
    if (band !== undefined)
      throw unsupported(
        `${where} its algorithm ${band.algorithm} does not support reservations. Put the rule in a rule set of its own, and check that one first.`,
      )
    if (group.isLeased) throw unsupported(`${where} its consistency LEASED does not support reservations. Use EXACT.`)
  }
}

/** The names of the costs that a reservation can be settled with. */
export const reservedCosts = (costs?: Costs): readonly string[] => [
  ...new Set([requestCost, ...Object.keys(costs ?? {})]),
]

const withoutWaiting = (charge: Charge): Charge => ({ ...charge, maxWaitTicks: 0 })

const shown = (text: string): string => JSON.stringify(text.slice(0, 64))

const unsupported = (message: string): FluxGateError => new FluxGateError('FLUXGATE_RESERVATION_UNSUPPORTED', message)

const tooMany = (): FluxGateError =>
  new FluxGateError(
    'FLUXGATE_RESERVATION_LIMIT',
    'The key has 10000 open reservations, or the memory store has maxReservations (default 200000). Nothing was charged. Settle or cancel reservations, use a shorter ttlMs, or raise maxReservations.',
  )
