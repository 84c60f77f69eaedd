import type { Decision } from '../core/decision.js'
import type { CheckOptions, Handler } from '../core/handler.js'
import type { RequestContext } from '../core/request-context.js'
import type { DecisionObserver } from '../telemetry/decision-observer.js'
import type { GateListeners } from './events.js'

/** Reports every decision of a handler to the observer, and to listeners of the `decision` event. */
export class ObservedHandler {
  readonly #handler: Required<Pick<Handler, 'decide'>>
  readonly #listeners: GateListeners
  readonly #observer: DecisionObserver | undefined

  constructor(
    handler: Required<Pick<Handler, 'decide'>>,
    listeners: GateListeners,
    observer: DecisionObserver | undefined,
  ) {
    this.#handler = handler
    this.#listeners = listeners
    this.#observer = observer
  }

  decide(context: RequestContext, options?: CheckOptions): Decision | Promise<Decision> {
    const observer = this.#observer
    // Reading the clock costs more than the rest of this method, so it is read only if the duration is used.
    const isTimed = observer === undefined || observer.isTiming || this.#listeners.hearDecisions
    const startedAt = isTimed ? performance.now() : -1
    const decided = this.#handler.decide(context, options)
    if (!(decided instanceof Promise)) return this.#report(decided, context, options, startedAt)
    const sentAt = isTimed ? startedAt : performance.now()
    return decided.then((decision) => this.#report(decision, context, options, sentAt))
  }

  #report(decision: Decision, context: RequestContext, options: CheckOptions | undefined, startedAt: number): Decision {
    const durationMs = startedAt === -1 ? -1 : performance.now() - startedAt
    if (options?.peek !== true) this.#observer?.decided(decision, context, durationMs)
    if (this.#listeners.hearDecisions) this.#listeners.emit('decision', { decision, context, durationMs })
    return decision
  }
}
