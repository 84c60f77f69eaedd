import type { Decision } from '../core/decision.js'
import type { CheckOptions, Handler } from '../core/handler.js'
import type { RequestContext } from '../core/request-context.js'
import type { DecisionObserver } from '../telemetry/decision-observer.js'
import type { GateListeners } from './gate-events.js'

type Decider = Required<Pick<Handler, 'check' | 'checkNow'>>

/** Notifies the observer and the 'decision' listeners of each decision. The observer alone costs only a few nanoseconds. */
export class WatchedHandler {
  readonly #handler: Decider
  readonly #listeners: GateListeners
  readonly #observer: DecisionObserver | undefined

  constructor(handler: Decider, listeners: GateListeners, observer: DecisionObserver | undefined) {
    this.#handler = handler
    this.#listeners = listeners
    this.#observer = observer
  }

  get isWatched(): boolean {
    return this.#observer !== undefined || this.#listeners.hearDecisions
  }

  /** Not an async function, because a memory store decides synchronously. */
  check(context: RequestContext, options?: CheckOptions): Promise<Decision> {
    try {
      const decision = this.checkNow(context, options)
      return decision === undefined ? this.#checkLater(context, options) : Promise.resolve(decision)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  checkNow(context: RequestContext, options?: CheckOptions): Decision | undefined {
    const observer = this.#observer
    if (observer === undefined || observer.isTiming || this.#listeners.hearDecisions || options?.peek)
      return this.#checkTimed(context, options)
    const decision = this.#handler.checkNow(context, options)
    if (decision !== undefined) observer.decided(decision, context, -1)
    return decision
  }

  #checkTimed(context: RequestContext, options?: CheckOptions): Decision | undefined {
    const startedAt = performance.now()
    const decision = this.#handler.checkNow(context, options)
    if (decision !== undefined) this.#notify(decision, context, options, performance.now() - startedAt)
    return decision
  }

  async #checkLater(context: RequestContext, options?: CheckOptions): Promise<Decision> {
    const startedAt = performance.now()
    const decision = await this.#handler.check(context, options)
    this.#notify(decision, context, options, performance.now() - startedAt)
    return decision
  }

  #notify(decision: Decision, context: RequestContext, options: CheckOptions | undefined, durationMs: number): void {
    if (options?.peek !== true) this.#observer?.decided(decision, context, durationMs)
    if (this.#listeners.hearDecisions) this.#listeners.emit('decision', { decision, context, durationMs })
  }
}
