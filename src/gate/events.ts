import type { Decision } from '../core/decision.js'
import { FluxGateError } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'

/** What a gate tells, by event name. */
export interface GateEvents {
  decision: { readonly decision: Decision; readonly context: RequestContext; readonly durationMs: number }
  /** After each reload; `error` says why the rules are still the old ones. */
  reload: { readonly changed: boolean; readonly error: FluxGateError | null }
  /** The store has failed: in a decision, a bucket reset or a health probe. Emitted once per outage. */
  degraded: { readonly error: unknown }
  /** The store answers again, and no call has failed for 250 ms. Emitted once per outage. */
  recovered: Record<string, never>
}

export type GateListener<Name extends keyof GateEvents> = (event: GateEvents[Name]) => void

/** Listeners by event. One that throws does so on its own, outside the decision it was told about. */
export class GateListeners {
  /** Whether anybody listens to decisions. Kept, and not looked up, because every decision asks. */
  hearDecisions = false
  readonly #byEvent: { [Name in keyof GateEvents]: Set<GateListener<Name>> } = {
    decision: new Set(),
    reload: new Set(),
    degraded: new Set(),
    recovered: new Set(),
  }

  add<Name extends keyof GateEvents>(name: Name, listener: GateListener<Name>): () => void {
    if (!Object.hasOwn(this.#byEvent, name))
      throw new FluxGateError(
        'FLUXGATE_ARGUMENT_INVALID',
        `There is no event "${String(name)}"; there is ${Object.keys(this.#byEvent).join(', ')}.`,
      )
    if (typeof listener !== 'function')
      throw new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `A listener must be a function, found ${typeof listener}.`)
    this.#byEvent[name].add(listener)
    this.#count()
    return () => {
      this.#byEvent[name].delete(listener)
      this.#count()
    }
  }

  #count(): void {
    this.hearDecisions = this.#byEvent.decision.size > 0
  }

  emit<Name extends keyof GateEvents>(name: Name, event: GateEvents[Name]): void {
    for (const listener of this.#byEvent[name]) {
      try {
        listener(event)
      } catch (error) {
        queueMicrotask(() => {
          throw error
        })
      }
    }
  }
}
