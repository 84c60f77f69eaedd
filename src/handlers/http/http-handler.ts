// biome-ignore lint/suspicious/noTsIgnore: an error is only expected in programs without the types of Node
/** @ts-ignore Programs for edge runtimes compile without the types of Node. */
import type { ConnectionOptions } from 'node:tls'
import { type Clock, systemClock, ticks, ticksPerMs } from '../../core/clock.js'
import { checkContext, checkPermits } from '../../core/decision/check-request.js'
import { checkCostValues } from '../../core/decision/costs.js'
import { throwIfAborted } from '../../core/decision/rate-limiter.js'
import type { Decision } from '../../core/decision.js'
import { FluxGateError } from '../../core/errors.js'
import type { CheckOptions, Handler } from '../../core/handler.js'
import type { RequestContext } from '../../core/request-context.js'
import { checkReserveOptions } from '../../core/reservations/check-reservation.js'
import type {
  Reservation,
  ReserveOptions,
  SettledReservation,
  SettleOptions,
} from '../../core/reservations/reservation.js'
import type { OnStoreFailure } from '../../core/rule.js'
import { type BreakerOptions, type BreakerState, CircuitBreaker } from '../../core/scheduling/circuit-breaker.js'
import { ExpiringIds } from '../../core/scheduling/expiring-ids.js'
import { addDecisionEvent } from '../../core/tracing/decision-event.js'
import { type OpenTelemetryApi, openTelemetryApi } from '../../core/tracing/open-telemetry.js'
import { traceHeaders } from '../../core/tracing/trace-headers.js'
import type { Slot } from '../../core/waiting/slot.js'
import { defaultMaxConcurrentWaits, WaitingRoom } from '../../core/waiting/waiting-room.js'
import { type WarningLogger, Warnings } from '../../validation/warnings.js'
import { failureDecision, withCause } from '../failure-decision.js'
import { CheckClient } from './check-client.js'
import { checkHttpOptions } from './check-options.js'
import { HttpClient } from './http-client.js'
import { HttpReservations } from './reservations.js'
import { serializeCheck } from './serialize-check.js'

/** Options of `HttpHandler`. */
export interface HttpHandlerOptions extends BreakerOptions {
  /** The URL of the server, such as `http://127.0.0.1:8090`. */
  readonly url: string
  /** The server's check token, or its admin token. */
  readonly token?: string
  /** Timeout of a call in milliseconds, counting only time in which the event loop runs. Default 100. */
  readonly timeoutMs?: number
  /** How long checks wait for the first connection to the server, counted in the same way. Default 2000. */
  readonly connectTimeoutMs?: number
  /** Decides requests while the server fails. Default: `LOCAL` with a `fallback`, otherwise `ALLOW`. */
  readonly onStoreFailure?: OnStoreFailure
  /** Decides in this process while the server fails, with `LOCAL`. */
  readonly fallback?: Handler
  /** The maximum number of delayed requests; further ones are rejected. Default 100. */
  readonly maxConcurrentWaits?: number
  /** The request headers that are sent to the server. Default: all but `authorization`, `proxy-authorization` and `cookie`. */
  readonly headers?: readonly string[]
  /** The maximum number of sockets. Default 16. */
  readonly connections?: number
  /** Options of `node:tls` for `https://`, such as `ca`, `cert` and `key`. */
  readonly tls?: ConnectionOptions
  /** Time source. Default: the system clock. */
  readonly clock?: Clock
  /** Receives a warning, once per cause, if requests are decided without the server. Default: process warnings. */
  readonly logger?: WarningLogger
  /** Called with the cause of every decision that was made without the server. */
  readonly onError?: (error: unknown) => void
  /** Called when the circuit breaker changes its state. */
  readonly onStateChange?: (state: BreakerState) => void
}

const noOptions: CheckOptions = Object.freeze({})

/**
 * Gets decisions from a FluxGate server. The checks of one turn of the event loop share a call. Delayed requests wait in this
 * process; if one is aborted, its permits are refunded to the server.
 */
export class HttpHandler implements Handler {
  readonly #client: HttpClient
  readonly #checks: CheckClient
  readonly #breaker: CircuitBreaker
  readonly #room: WaitingRoom
  readonly #clock: Clock
  readonly #policy: OnStoreFailure
  readonly #fallback: Handler | undefined
  readonly #headers: ReadonlySet<string> | undefined
  readonly #onError: ((error: unknown) => void) | undefined
  /** Failures of the server and wrong tokens, with the number of decisions that were made without the server. */
  readonly warnings: Warnings
  /** Holds that were taken by the fallback, which knows when they expire. */
  readonly #localHolds = new ExpiringIds()
  readonly #reservations: HttpReservations
  /** Undefined without an OpenTelemetry SDK. */
  readonly #openTelemetry: OpenTelemetryApi | undefined
  #isClosed = false

  constructor(options: HttpHandlerOptions) {
    checkHttpOptions(options)
    const { url, token, tls, fallback, headers, connections = 16, clock = systemClock } = options
    const { timeoutMs = 100, connectTimeoutMs = 2_000 } = options
    this.#policy = options.onStoreFailure ?? (fallback === undefined ? 'ALLOW' : 'LOCAL')
    this.#fallback = fallback
    this.#headers = headers && new Set(headers.map((name) => name.toLowerCase()))
    this.#clock = clock
    this.#onError = options.onError
    this.warnings = new Warnings(options.logger)
    this.#room = new WaitingRoom(options.maxConcurrentWaits ?? defaultMaxConcurrentWaits, clock)
    this.#breaker = new CircuitBreaker(options, clock)
    const api = openTelemetryApi()
    this.#openTelemetry = api
    const tracing = api && { traceHeaders: () => traceHeaders(api) }
    this.#client = new HttpClient({ url, token, tls, timeoutMs, connectTimeoutMs, connections, clock, ...tracing })
    this.#checks = new CheckClient(this.#client, this.#breaker, options.onStateChange)
    const onFailure = (error: unknown): void => {
      this.#warn(error)
      this.#onError?.(error)
    }
    this.#reservations = new HttpReservations({
      ...{ checks: this.#checks, clock, policy: this.#policy, fallback, onFailure },
    })
  }

  /** The state of the circuit breaker. */
  get breaker(): BreakerState {
    return this.#breaker.state
  }

  async check(context: RequestContext, options: CheckOptions = noOptions): Promise<Decision> {
    this.#assertOpen()
    throwIfAborted(options)
    const text = this.#serialize(context, options)
    let decision: Decision
    try {
      decision = await this.#checks.check(text)
    } catch (error) {
      // The server works, and no other decision is better: a misspelt cost must not remove a limit.
      if (error instanceof FluxGateError && error.code === 'FLUXGATE_COST_UNKNOWN') throw error
      this.#warn(error)
      this.#onError?.(error)
      return this.#decideWithoutServer(context, options, error)
    }
    const dated = decision.decidedAt === undefined ? { ...decision, decidedAt: this.#clock.now() } : decision
    return this.#report(this.#hold(dated, context, options), options)
  }

  /** The server counts the decision. Here it is an event of the span that asked for it. */
  #report(decision: Decision, { peek }: CheckOptions): Decision {
    if (this.#openTelemetry !== undefined && peek !== true) addDecisionEvent(this.#openTelemetry, decision)
    return decision
  }

  async refund(
    context: RequestContext,
    options: Pick<CheckOptions, 'ruleSetId' | 'permits' | 'costs'> = {},
  ): Promise<void> {
    this.#assertOpen()
    const { ruleSetId, permits, costs } = options
    await this.#checks.refund(this.#serialize(context, { ruleSetId, permits, costs }))
  }

  async reserve(context: RequestContext, options: ReserveOptions): Promise<Reservation> {
    this.#assertOpen()
    const terms = checkReserveOptions(options)
    const { ruleSetId, permits, costs } = options
    return this.#reservations.reserve(context, options, terms, this.#serialize(context, { ruleSetId, permits, costs }))
  }

  async settle(id: string, actual?: SettleOptions): Promise<SettledReservation> {
    this.#assertOpen()
    return this.#reservations.settle(id, actual)
  }

  async cancel(id: string): Promise<SettledReservation> {
    this.#assertOpen()
    return this.#reservations.cancel(id)
  }

  async release(holdId: string): Promise<boolean> {
    return this.#localHolds.delete(holdId)
      ? ((await this.#fallback?.release?.(holdId)) ?? false)
      : this.#checks.release(holdId)
  }

  async renew(holdId: string): Promise<boolean> {
    return this.#localHolds.expiresAt(holdId) !== undefined
      ? ((await this.#fallback?.renew?.(holdId)) ?? false)
      : this.#checks.renew(holdId)
  }

  /** Rejects the delayed requests and closes the connections. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#room.close()
    // Waits for the refunds of the delayed requests.
    await this.#checks.settled()
    this.#client.close()
  }

  /** Throws for invalid arguments, as other handlers do. */
  #serialize(context: RequestContext, options: CheckOptions): string {
    const { permits, costs } = options
    if (permits !== undefined) checkPermits(permits)
    if (costs != null) checkCostValues(costs, permits)
    const trace = this.#openTelemetry && traceHeaders(this.#openTelemetry)
    return serializeCheck(checkContext(context), options, this.#headers, trace?.traceparent)
  }

  /** An open circuit breaker follows from failures that were reported before. */
  #warn(error: unknown): void {
    if (!(error instanceof FluxGateError) || error.code === 'FLUXGATE_STORE_OPEN') return
    const message = `${error.message.replace(/\.?$/, '.')} Until it answers, requests are decided without it (${this.#policy}).`
    this.warnings.warn(error.code, message, error.code)
  }

  async #decideWithoutServer(context: RequestContext, options: CheckOptions, error: unknown): Promise<Decision> {
    if (this.#policy === 'LOCAL' && this.#fallback !== undefined)
      return withCause(this.#localDecision(await this.#fallback.check(context, options)), error)
    const { ruleSetId = null } = options
    const decision = failureDecision(this.#policy !== 'DENY', this.#clock.now(), { ruleSetId })
    return this.#report(withCause(decision, error), options)
  }

  /** Holds that the fallback took are released there, even if the server has recovered since. */
  #localDecision(decision: Decision): Decision {
    if (decision.holdId !== undefined) this.#localHolds.add(decision.holdId, Number.POSITIVE_INFINITY)
    return { ...decision, degraded: true }
  }

  /** Gives a delayed request a slot in the waiting room, or rejects it if the room is full. */
  #hold(decision: Decision, context: RequestContext, options: CheckOptions): Decision {
    const { signal, onLeave } = options
    const { allowed, delayMs, ruleSetId, ruleId, key } = decision
    if (!allowed || options.peek || (signal === undefined && onLeave === undefined)) return decision
    const delay = delayMs * ticksPerMs
    const slot: Slot = {
      bucket: JSON.stringify([ruleSetId, ruleId, key]),
      permits: options.permits ?? 1,
      grantedAt: [ticks(this.#clock) + delay],
      delay,
      isOrdered: false,
    }
    // A request without a delay passes, unless others already wait for the same bucket.
    if (delayMs === 0 && (onLeave === undefined || !this.#room.hasQueue([slot]))) return decision
    const refund = (): void => {
      // If the refund fails, the permits return by refill.
      this.#checks.refund(this.#serialize(context, { ...options, peek: false })).catch(() => {})
    }
    if (this.#room.isFull) {
      refund()
      return rejectWithoutSlot(decision, this.#room.nextFreeMs)
    }
    this.#room.hold([slot], options, (departure) => {
      if (departure !== 'RELEASED') refund()
    })
    return decision
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new FluxGateError('FLUXGATE_CLOSED', 'The HttpHandler is closed. Create a new one.')
  }
}

/** Turns the decision of a delayed request into a rejection, because the waiting room is full. */
function rejectWithoutSlot(decision: Decision, nextFreeMs: number): Decision {
  const { ruleId, band, delayMs } = decision
  const retryAfterMs = Math.max(1, Math.ceil(Math.min(nextFreeMs, delayMs)))
  const bands = decision.bands.map((one) =>
    one.ruleId === ruleId && one.label === band ? { ...one, allowed: false, retryAfterMs } : one,
  )
  return { ...decision, allowed: false, delayMs: 0, reason: 'LIMITED', retryAfterMs, bands }
}
