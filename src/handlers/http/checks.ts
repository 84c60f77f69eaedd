import type { Decision } from '../../core/decision.js'
import { type ErrorCode, FluxGateError, isUnsent } from '../../core/errors.js'
import type { BreakerState, CircuitBreaker } from '../../core/scheduling/circuit-breaker.js'
import { TurnBatches } from '../../core/scheduling/turn-batches.js'
import type { HttpAnswer, HttpCaller } from './caller.js'
import { isDecision } from './is-decision.js'

interface Asked {
  readonly text: string
  readonly answer: (decision: Decision) => void
  readonly fail: (error: unknown) => void
}

/** A server takes a thousand checks in one call, and a body of 1 MiB. */
const maxBatch = 1_000
const maxBytes = 900_000

/** What a status means besides that something is wrong: what was asked, or who has asked. */
const codes: Readonly<Record<number, ErrorCode>> = {
  400: 'FLUXGATE_ARGUMENT_INVALID',
  413: 'FLUXGATE_ARGUMENT_INVALID',
  422: 'FLUXGATE_ARGUMENT_INVALID',
  401: 'FLUXGATE_STORE_MISCONFIGURED',
  403: 'FLUXGATE_STORE_MISCONFIGURED',
}

/** The questions on their way to a server: gathered by turn, kept away from one that keeps failing. */
export class HttpChecks {
  readonly #caller: HttpCaller
  readonly #breaker: CircuitBreaker
  readonly #onStateChange: ((state: BreakerState) => void) | undefined
  readonly #batches: TurnBatches<Asked>
  readonly #refunds = new Set<Promise<unknown>>()

  constructor(caller: HttpCaller, breaker: CircuitBreaker, onStateChange: ((state: BreakerState) => void) | undefined) {
    this.#caller = caller
    this.#breaker = breaker
    this.#onStateChange = onStateChange
    this.#batches = new TurnBatches({
      weightOf: ({ text }) => Math.max(Buffer.byteLength(text) + 1, maxBytes / maxBatch),
      maxWeight: maxBytes,
      send: (_, items) => void this.#send(items),
    })
  }

  /** Rejects if the server does not decide, for whatever reason. */
  ask(text: string): Promise<Decision> {
    if (this.#breaker.state === 'OPEN') return Promise.reject(this.#breakerOpen())
    return new Promise((answer, fail) => this.#batches.add(0, { text, answer, fail }))
  }

  async refund(text: string): Promise<void> {
    const refund = this.#call('/api/ratelimit/refund', text, () => {})
    this.#refunds.add(refund)
    try {
      await refund
    } finally {
      this.#refunds.delete(refund)
    }
  }

  /** Resolves when no refund is under way. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#refunds)
  }

  async #send(asked: readonly Asked[]): Promise<void> {
    const [first] = asked as [Asked]
    try {
      const decisions =
        asked.length === 1
          ? await this.#call('/api/ratelimit/check', first.text, (value) => this.#read([value], 1))
          : await this.#call('/api/ratelimit/check/batch', batchOf(asked), (value) =>
              this.#read((value as { decisions?: unknown } | null)?.decisions, asked.length),
            )
      for (const [index, { answer }] of asked.entries()) answer(decisions[index] as Decision)
    } catch (error) {
      // One that the server does not take must not be everybody's fault.
      if (isInput(error) && asked.length > 1) for (const one of asked) void this.#send([one])
      else for (const { fail } of asked) fail(error)
    }
  }

  /** Through the breaker. An answer that cannot be used counts as none, unless it is about what was asked. */
  async #call<T>(path: string, body: string, read: (value: unknown) => T): Promise<T> {
    const before = this.#breaker.state
    const passage = this.#breaker.enter()
    if (passage === undefined) throw this.#breakerOpen()
    try {
      const answer = await this.#caller.post(path, body)
      if (answer.status !== 200) throw this.#refused(answer)
      const result = read(answer.value)
      this.#breaker.succeeded()
      return result
    } catch (error) {
      if (isInput(error)) this.#breaker.succeeded()
      else if (isUnsent(error)) this.#breaker.abandoned(passage)
      else this.#breaker.failed(passage)
      throw error
    } finally {
      if (this.#breaker.state !== before) this.#onStateChange?.(this.#breaker.state)
    }
  }

  #read(values: unknown, count: number): readonly Decision[] {
    if (Array.isArray(values) && values.length === count && values.every(isDecision)) return values
    const message = `The server at ${this.#caller.where} answered something that is no decision; is it FluxGate?`
    throw new FluxGateError('FLUXGATE_STORE_FAILED', message)
  }

  #refused({ status, value }: HttpAnswer): FluxGateError {
    const detail = (value as { detail?: unknown } | null | undefined)?.detail
    const reason = typeof detail === 'string' ? `: ${detail.slice(0, 200)}` : '.'
    return new FluxGateError(
      codes[status] ?? 'FLUXGATE_STORE_FAILED',
      `The server at ${this.#caller.where} answered ${status}${reason}`,
    )
  }

  #breakerOpen(): FluxGateError {
    return new FluxGateError(
      'FLUXGATE_STORE_OPEN',
      `The server at ${this.#caller.where} has failed repeatedly, so the circuit breaker is open: it was not asked.`,
    )
  }
}

const batchOf = (asked: readonly Asked[]): string => `{"checks":[${asked.map(({ text }) => text).join()}]}`

const isInput = (error: unknown): boolean =>
  error instanceof FluxGateError && error.code === 'FLUXGATE_ARGUMENT_INVALID'
