import { type Clock, ticksPerMs } from '../../core/clock.js'
import { FluxGateError } from '../../core/errors.js'
import type { Handler } from '../../core/handler.js'
import type { RequestContext } from '../../core/request-context.js'
import { type CheckedTerms, checkReservationId, checkSettleOptions } from '../../core/reservations/check-reservation.js'
import type {
  Reservation,
  ReserveOptions,
  SettledReservation,
  SettleOptions,
} from '../../core/reservations/reservation.js'
import type { OnStoreFailure } from '../../core/rule.js'
import { failureDecision, withCause } from '../failure-decision.js'
import type { CheckClient } from './check-client.js'
import { isDecision } from './is-decision.js'

export interface HttpReservationsOptions {
  readonly checks: CheckClient
  readonly clock: Clock
  readonly policy: OnStoreFailure
  readonly fallback: Handler | undefined
  /** Reports that a decision is made without the server. */
  readonly onFailure: (error: unknown) => void
}

/** The most reservations without the server that are remembered. */
const maxLocal = 100_000

/** Reservations on a server. Those that were made while it failed are ended in this process. */
export class HttpReservations {
  readonly #options: HttpReservationsOptions
  /** Reservations without the server: made by the fallback, or allowed without a limit, which have an end after they are settled. */
  readonly #local = new Map<string, 'FALLBACK' | 'OPEN' | SettledReservation>()

  constructor(options: HttpReservationsOptions) {
    this.#options = options
  }

  /** `check` is the JSON of the check with the same context. */
  async reserve(
    context: RequestContext,
    options: ReserveOptions,
    { id, isNamed, ttlTicks, onExpire }: CheckedTerms,
    check: string,
  ): Promise<Reservation> {
    const { checks, onFailure } = this.#options
    const ttlMs = Math.ceil(ttlTicks / ticksPerMs)
    try {
      return await checks.post('/api/ratelimit/reserve', { ...JSON.parse(check), ttlMs, id, onExpire }, isReservation)
    } catch (error) {
      if (isReplyAboutReservation(error)) throw error
      onFailure(error)
      // The server may have executed the call. No other process can end a reservation with a random id.
      if (!isNamed) checks.post('/api/ratelimit/cancel', { id }, isSettled).catch(() => {})
      return this.#reserveWithoutServer(context, { ...options, id }, id, error)
    }
  }

  async settle(given: string, actual?: SettleOptions): Promise<SettledReservation> {
    const id = checkReservationId(given)
    const { requests: permits, ...costs } = checkSettleOptions(actual ?? {})
    return (
      this.#endLocally(id, 'SETTLED', () => this.#options.fallback?.settle?.(id, actual)) ??
      this.#options.checks.post('/api/ratelimit/settle', { id, permits, costs }, isSettled)
    )
  }

  async cancel(given: string): Promise<SettledReservation> {
    const id = checkReservationId(given)
    return (
      this.#endLocally(id, 'CANCELED', () => this.#options.fallback?.cancel?.(id)) ??
      this.#options.checks.post('/api/ratelimit/cancel', { id }, isSettled)
    )
  }

  async #reserveWithoutServer(
    context: RequestContext,
    options: ReserveOptions,
    id: string,
    error: unknown,
  ): Promise<Reservation> {
    const { policy, fallback, clock } = this.#options
    if (policy === 'LOCAL' && fallback?.reserve !== undefined) {
      const { decision } = await fallback.reserve(context, options)
      if (decision.allowed) this.#remember(id, 'FALLBACK')
      return { decision: withCause({ ...decision, degraded: true }, error), id }
    }
    const isAllowed = policy !== 'DENY'
    if (isAllowed) this.#remember(id, 'OPEN')
    const decision = failureDecision(isAllowed, clock.now(), { ruleSetId: options.ruleSetId ?? null })
    return { decision: withCause(decision, error), id }
  }

  #endLocally(
    id: string,
    status: SettledReservation['status'],
    end: () => Promise<SettledReservation> | undefined,
  ): Promise<SettledReservation> | undefined {
    const local = this.#local.get(id)
    if (local === undefined) return undefined
    if (local === 'FALLBACK') return end()
    const nowMs = this.#options.clock.now()
    const settled =
      local === 'OPEN' ? { id, status, decision: failureDecision(true, nowMs, { ruleSetId: null }) } : local
    this.#local.set(id, settled)
    return Promise.resolve(settled)
  }

  #remember(id: string, how: 'FALLBACK' | 'OPEN'): void {
    this.#local.set(id, how)
    if (this.#local.size <= maxLocal) return
    const [oldest = ''] = this.#local.keys()
    this.#local.delete(oldest)
  }
}

/** True for errors that the server has decided: the reservation is unknown, has expired, or is not possible. */
const isReplyAboutReservation = (error: unknown): boolean =>
  error instanceof FluxGateError &&
  (error.code.startsWith('FLUXGATE_RESERVATION_') || error.code === 'FLUXGATE_COST_UNKNOWN')

const isReservation = (value: unknown): value is Reservation => {
  const { decision, id } = (value ?? {}) as Partial<Reservation>
  return typeof id === 'string' && isDecision(decision)
}

const isSettled = (value: unknown): value is SettledReservation => {
  const { status } = (value ?? {}) as Partial<SettledReservation>
  return isReservation(value) && (status === 'SETTLED' || status === 'CANCELED')
}
