import type { Decision } from '../../core/decision.js'
import { type ErrorCode, FluxGateError, isUnsent } from '../../core/errors.js'
import type { BreakerState, CircuitBreaker } from '../../core/scheduling/circuit-breaker.js'
import { TurnBatches } from '../../core/scheduling/turn-batches.js'
import type { HttpClient, HttpReply } from './http-client.js'
import { isDecision } from './is-decision.js'

interface PendingCheck {
  readonly text: string
  readonly resolve: (decision: Decision) => void
  readonly reject: (error: unknown) => void
}

/** A server accepts up to 1,000 checks per call and a body of 1 MiB. */
const maxBatch = 1_000
const maxBytes = 900_000

/** The error codes of statuses that are not failures of the server: an invalid check, or a missing or wrong token. */
const codes: Readonly<Record<number, ErrorCode>> = {
  400: 'FLUXGATE_ARGUMENT_INVALID',
  413: 'FLUXGATE_ARGUMENT_INVALID',
  422: 'FLUXGATE_ARGUMENT_INVALID',
  401: 'FLUXGATE_STORE_MISCONFIGURED',
  403: 'FLUXGATE_STORE_MISCONFIGURED',
}

/** Error codes that a healthy server returns. */
const decidedCodes: ReadonlySet<ErrorCode> = new Set([
  'FLUXGATE_RESERVATION_UNKNOWN',
  'FLUXGATE_RESERVATION_EXPIRED',
  'FLUXGATE_RESERVATION_UNSUPPORTED',
  'FLUXGATE_RESERVATION_LIMIT',
  'FLUXGATE_COST_UNKNOWN',
])

/** Sends checks and refunds to a server: batches the checks of one turn, and stops calling a server that keeps failing. */
export class CheckClient {
  readonly #client: HttpClient
  readonly #breaker: CircuitBreaker
  readonly #onStateChange: ((state: BreakerState) => void) | undefined
  readonly #batches: TurnBatches<PendingCheck>
  readonly #changes = new Set<Promise<unknown>>()

  constructor(client: HttpClient, breaker: CircuitBreaker, onStateChange: ((state: BreakerState) => void) | undefined) {
    this.#client = client
    this.#breaker = breaker
    this.#onStateChange = onStateChange
    this.#batches = new TurnBatches({
      maxWeight: maxBytes,
      send: (_, items) => void this.#send(items),
    })
  }

  /** Rejects if the server does not return a decision, for whatever reason. */
  check(text: string): Promise<Decision> {
    if (this.#breaker.state === 'OPEN') return Promise.reject(this.#breakerOpen())
    const weight = Math.max(Buffer.byteLength(text) + 1, maxBytes / maxBatch)
    return new Promise((resolve, reject) => this.#batches.add(0, { text, resolve, reject }, weight))
  }

  refund(text: string): Promise<void> {
    return this.#tracked(this.#call('/api/ratelimit/refund', text, () => {}))
  }

  /** Releases a hold. Resolves to false if the server does not have it any more. */
  release(holdId: string): Promise<boolean> {
    const call = this.#call('/api/ratelimit/release', JSON.stringify({ holdId }), flagOf('released'))
    return this.#tracked(call)
  }

  renew(holdId: string): Promise<boolean> {
    return this.#call('/api/ratelimit/renew', JSON.stringify({ holdId }), flagOf('renewed'))
  }

  /** Posts a body whose reply must fulfil a condition. Errors that the server has decided keep their code. */
  post<T>(path: string, body: object, isExpected: (value: unknown) => value is T): Promise<T> {
    const call = this.#call(path, JSON.stringify(body), (value) => {
      if (isExpected(value)) return value
      throw new FluxGateError('FLUXGATE_STORE_FAILED', `The server at ${this.#client.origin} sent an unexpected reply.`)
    })
    return this.#tracked(call)
  }

  async #tracked<T>(change: Promise<T>): Promise<T> {
    this.#changes.add(change)
    try {
      return await change
    } finally {
      this.#changes.delete(change)
    }
  }

  /** Resolves when no refund, release or change of a reservation is in flight. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#changes)
  }

  async #send(checks: readonly PendingCheck[]): Promise<void> {
    const [first] = checks as [PendingCheck]
    try {
      const decisions =
        checks.length === 1
          ? await this.#call('/api/ratelimit/check', first.text, (value) => this.#parse([value], 1))
          : await this.#call('/api/ratelimit/check/batch', batchOf(checks), (value) =>
              this.#parse((value as { decisions?: unknown } | null)?.decisions, checks.length),
            )
      for (const [index, { resolve }] of checks.entries()) resolve(decisions[index] as Decision)
    } catch (error) {
      // A check that the server rejects as invalid must not fail the others of its batch.
      if (isInvalidCheck(error) && checks.length > 1) for (const check of checks) void this.#send([check])
      else for (const { reject } of checks) reject(error)
    }
  }

  /** Calls through the circuit breaker. An unusable reply counts as a failure, except for the report of an invalid check. */
  async #call<T>(path: string, body: string, parse: (value: unknown) => T): Promise<T> {
    const before = this.#breaker.state
    const passage = this.#breaker.enter()
    if (passage === undefined) throw this.#breakerOpen()
    try {
      const reply = await this.#client.post(path, body)
      if (reply.status !== 200) throw this.#errorOf(reply)
      const result = parse(reply.value)
      this.#breaker.succeeded()
      return result
    } catch (error) {
      if (isInvalidCheck(error)) this.#breaker.succeeded()
      else if (isUnsent(error)) this.#breaker.abandoned(passage)
      else this.#breaker.failed(passage)
      throw error
    } finally {
      if (this.#breaker.state !== before) this.#onStateChange?.(this.#breaker.state)
    }
  }

  #parse(values: unknown, count: number): readonly Decision[] {
    if (Array.isArray(values) && values.length === count && values.every(isDecision)) return values
    const message = `The server at ${this.#client.origin} did not reply with a decision. Check that the URL is that of a FluxGate server.`
    throw new FluxGateError('FLUXGATE_STORE_FAILED', message)
  }

  #errorOf({ status, value }: HttpReply): FluxGateError {
    const detail = (value as { detail?: unknown } | null | undefined)?.detail
    const { code } = (value ?? {}) as { code?: unknown }
    if (typeof detail === 'string' && decidedCodes.has(code as ErrorCode))
      return new FluxGateError(code as ErrorCode, detail.slice(0, 500))
    const reason = typeof detail === 'string' ? `: ${detail.slice(0, 200)}` : '.'
    return new FluxGateError(
      codes[status] ?? 'FLUXGATE_STORE_FAILED',
      `The server at ${this.#client.origin} replied with status ${status}${reason}`,
    )
  }

  #breakerOpen(): FluxGateError {
    return new FluxGateError(
      'FLUXGATE_STORE_OPEN',
      `The server at ${this.#client.origin} has failed repeatedly, so the circuit breaker is open and the call was not sent.`,
    )
  }
}

const flagOf =
  (name: string) =>
  (value: unknown): boolean =>
    (value as Record<string, unknown> | null)?.[name] === true

const batchOf = (checks: readonly PendingCheck[]): string => `{"checks":[${checks.map(({ text }) => text).join()}]}`

const isInvalidCheck = (error: unknown): boolean =>
  error instanceof FluxGateError && (error.code === 'FLUXGATE_ARGUMENT_INVALID' || decidedCodes.has(error.code))
