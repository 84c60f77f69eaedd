import type { JointCheck, JointDecision, JointOptions } from '../core/decision/joint/joint-check.js'
import type { Decision } from '../core/decision.js'
import type { CheckOptions, Handler } from '../core/handler.js'
import type { RequestContext } from '../core/request-context.js'
import type { Reservation, ReserveOptions } from '../core/reservations/reservation.js'
import type { DecisionObserver } from '../telemetry/decision-observer.js'
import type { GateListeners } from './events.js'

/** Decides synchronously where no I/O is needed. */
export interface Decider {
  decide(context: RequestContext, options?: CheckOptions): Decision | Promise<Decision>
  decideTogether(checks: readonly JointCheck[], options?: JointOptions): JointDecision | Promise<JointDecision>
}

/** Reports every decision of a handler to the observer, and to listeners of the `decision` event. */
export class ObservedHandler implements Decider {
  readonly #handler: Decider
  readonly #listeners: GateListeners
  readonly #observer: DecisionObserver | undefined

  constructor(handler: Decider, listeners: GateListeners, observer: DecisionObserver | undefined) {
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
    if (!(decided instanceof Promise)) return this.#report(decided, context, options?.peek, startedAt)
    const sentAt = isTimed ? startedAt : performance.now()
    return decided.then((decision) => this.#report(decision, context, options?.peek, sentAt))
  }

  /** Reports one decision. Its context is that of the check that decides. */
  decideTogether(checks: readonly JointCheck[], options?: JointOptions): JointDecision | Promise<JointDecision> {
    const startedAt = performance.now()
    const isPeek = options?.peek === true || checks.every(({ permits = 1 }) => permits <= 0)
    const report = (joint: JointDecision): JointDecision => {
      const rejecting = joint.parts.findIndex(({ allowed }) => !allowed)
      const { context = noContext } = checks[Math.max(0, rejecting)] ?? {}
      this.#report(joint.decision, context, isPeek, startedAt)
      return joint
    }
    const decided = this.#handler.decideTogether(checks, options)
    return decided instanceof Promise ? decided.then(report) : report(decided)
  }

  /** Makes a reservation and reports its decision like that of a check. */
  async reserve(
    handler: Required<Pick<Handler, 'reserve'>>,
    context: RequestContext,
    options: ReserveOptions,
  ): Promise<Reservation> {
    const startedAt = performance.now()
    const reservation = await handler.reserve(context, options)
    this.#report(reservation.decision, context, false, startedAt)
    return reservation
  }

  #report(decision: Decision, context: RequestContext, isPeek: boolean | undefined, startedAt: number): Decision {
    const durationMs = startedAt === -1 ? -1 : performance.now() - startedAt
    if (isPeek !== true) this.#observer?.decided(decision, context, durationMs)
    if (this.#listeners.hearDecisions) this.#listeners.emit('decision', { decision, context, durationMs })
    return decision
  }
}

const noContext: RequestContext = Object.freeze({})
