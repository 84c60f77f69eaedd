import type { ConnectionOptions } from 'node:tls'
import { type Clock, systemClock, ticks, ticksPerMs } from '../../core/clock.js'
import { checkContext, checkPermits } from '../../core/decision/check-request.js'
import { throwIfAborted } from '../../core/decision/rate-limiter.js'
import { unmeteredDecision } from '../../core/decision/unmetered-decision.js'
import type { Decision } from '../../core/decision.js'
import { FluxGateError } from '../../core/errors.js'
import type { CheckOptions, Handler } from '../../core/handler.js'
import type { RequestContext } from '../../core/request-context.js'
import type { OnStoreFailure } from '../../core/rule.js'
import { type BreakerOptions, type BreakerState, CircuitBreaker } from '../../core/scheduling/circuit-breaker.js'
import type { Slot } from '../../core/waiting/slot.js'
import { defaultMaxConcurrentWaits, WaitingRoom } from '../../core/waiting/waiting-room.js'
import { HttpCaller } from './caller.js'
import { checkHttpOptions } from './check-options.js'
import { checkText } from './check-text.js'
import { HttpChecks } from './checks.js'
import { rejectWithoutSlot } from './reject-without-slot.js'

export interface HttpHandlerOptions extends BreakerOptions {
  /** Where the server is, such as `http://127.0.0.1:8090`. */
  readonly url: string
  /** The server's check token, or its admin token. */
  readonly token?: string
  /** How long one call may take, in milliseconds in which the event loop could run; default 100. */
  readonly timeoutMs?: number
  /** How long checks wait for the server's first connection, counted in the same way; default 2000. */
  readonly connectTimeoutMs?: number
  /** What becomes of requests while the server fails; default LOCAL with a `fallback`, else ALLOW. */
  readonly onStoreFailure?: OnStoreFailure
  /** Who decides in this process while the server fails, for LOCAL. */
  readonly fallback?: Handler
  /** How many delayed requests are held at once; default 100. */
  readonly maxConcurrentWaits?: number
  /** Which headers of a request the server is told; default all but `authorization`, `proxy-authorization` and `cookie`. */
  readonly headers?: readonly string[]
  /** How many sockets are open at most; default 16. */
  readonly connections?: number
  /** For `https://`, as of `node:tls`: `ca`, `cert`, `key`. */
  readonly tls?: ConnectionOptions
  readonly clock?: Clock
  /** Told of every decision that was made without the server, and why. */
  readonly onError?: (error: unknown) => void
  readonly onStateChange?: (state: BreakerState) => void
}

const noOptions: CheckOptions = Object.freeze({})

/** How soon to come back when the server is down and nobody decides instead. */
const retryAfterFailureMs = 1_000

/**
 * Asks a FluxGate server. Decisions asked for in the same turn travel together. Requests that are delayed wait here; the
 * permits of those who leave before their time are given back to the server.
 */
export class HttpHandler implements Handler {
  readonly #caller: HttpCaller
  readonly #checks: HttpChecks
  readonly #breaker: CircuitBreaker
  readonly #room: WaitingRoom
  readonly #clock: Clock
  readonly #policy: OnStoreFailure
  readonly #fallback: Handler | undefined
  readonly #headers: ReadonlySet<string> | undefined
  readonly #onError: ((error: unknown) => void) | undefined
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
    this.#room = new WaitingRoom(options.maxConcurrentWaits ?? defaultMaxConcurrentWaits, clock)
    this.#breaker = new CircuitBreaker(options, clock)
    this.#caller = new HttpCaller({ url, token, tls, timeoutMs, connectTimeoutMs, connections, clock })
    this.#checks = new HttpChecks(this.#caller, this.#breaker, options.onStateChange)
  }

  get breaker(): BreakerState {
    return this.#breaker.state
  }

  async check(context: RequestContext, options: CheckOptions = noOptions): Promise<Decision> {
    this.#assertOpen()
    throwIfAborted(options)
    const text = this.#textOf(context, options)
    let decision: Decision
    try {
      decision = await this.#checks.ask(text)
    } catch (error) {
      this.#onError?.(error)
      return this.#withoutServer(context, options)
    }
    return this.#seated(decision, context, options)
  }

  async refund(context: RequestContext, options: Pick<CheckOptions, 'ruleSetId' | 'permits'> = {}): Promise<void> {
    this.#assertOpen()
    const { ruleSetId, permits } = options
    await this.#checks.refund(this.#textOf(context, { ruleSetId, permits }))
  }

  /** Sends away those who are held, and closes the connections. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#room.close()
    // Those who were held have asked for their permits to be taken back.
    await this.#checks.settled()
    this.#caller.close()
  }

  /** Wrong arguments are the caller's mistake, here as in a handler that decides by itself. */
  #textOf(context: RequestContext, options: CheckOptions): string {
    checkPermits(options.permits ?? 1)
    return checkText(checkContext(context), options, this.#headers)
  }

  async #withoutServer(context: RequestContext, options: CheckOptions): Promise<Decision> {
    if (this.#policy === 'LOCAL' && this.#fallback !== undefined)
      return { ...(await this.#fallback.check(context, options)), degraded: true }
    const isAllowed = this.#policy !== 'DENY'
    return unmeteredDecision(isAllowed, 'STORE_FAILURE', this.#clock.now(), {
      ruleSetId: options.ruleSetId ?? null,
      degraded: true,
      ...(!isAllowed && { retryAfterMs: retryAfterFailureMs }),
    })
  }

  /** The decision, once its request has a place to wait in if it needs one. */
  #seated(decision: Decision, context: RequestContext, options: CheckOptions): Decision {
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
    const giveBack = (): void => {
      // Best effort: what the server does not take back comes back with the next refill.
      this.#checks.refund(this.#textOf(context, { ...options, peek: false })).catch(() => {})
    }
    if (this.#room.isFull) {
      giveBack()
      return rejectWithoutSlot(decision, this.#room.nextFreeMs)
    }
    options.onEnter?.()
    this.#room.enter({
      slots: [slot],
      isHeld: onLeave !== undefined,
      signal: typeof signal === 'function' ? signal() : signal,
      leave: (how) => {
        if (how !== 'RELEASED') giveBack()
        onLeave?.(how)
      },
    })
    return decision
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new FluxGateError('FLUXGATE_CLOSED', 'This handler was closed. Create another one.')
  }
}
