import type { StartedBan } from '../core/bans/ban-storage.js'
import { ticksPerMs } from '../core/clock.js'
import type { Decision } from '../core/decision.js'
import { FluxGateError, messageOf } from '../core/errors.js'
import type { RequestContext } from '../core/request-context.js'

/** Events of a gate with their payloads. */
export interface GateEvents {
  /** Emitted after every decision, with the milliseconds that it took. */
  decision: { readonly decision: Decision; readonly context: RequestContext; readonly durationMs: number }
  /** A decision of this process has banned a key. `until` is an ISO 8601 time. */
  ban: { readonly ruleSetId: string; readonly ruleId: string; readonly key: string; readonly until: string }
  /** Emitted after each reload; `changed` is false if the rules were equal. With an `error`, the previous rules stay in effect. */
  reload: { readonly changed: boolean; readonly error: FluxGateError | null }
  /** The store has failed: in a decision, a bucket reset or a health probe. Emitted once per outage. */
  degraded: { readonly error: unknown }
  /** The store answers again, and no call has failed for 250 ms. Emitted once per outage. */
  recovered: Record<string, never>
}

/** A listener for one event of a gate. */
export type GateListener<Name extends keyof GateEvents> = (event: GateEvents[Name]) => void

/** Listeners by event. An error of a listener is rethrown in a microtask, so that it never affects a decision. */
export class GateListeners {
  /** True if there is a listener for decisions. Cached, because every decision reads it. */
  hearDecisions = false
  readonly #byEvent: { [Name in keyof GateEvents]: Set<GateListener<Name>> } = {
    decision: new Set(),
    ban: new Set(),
    reload: new Set(),
    degraded: new Set(),
    recovered: new Set(),
  }

  add<Name extends keyof GateEvents>(name: Name, listener: GateListener<Name>): () => void {
    if (!Object.hasOwn(this.#byEvent, name))
      throw new FluxGateError(
        'FLUXGATE_ARGUMENT_INVALID',
        `Unknown event "${String(name)}". Use one of ${Object.keys(this.#byEvent).join(', ')}.`,
      )
    if (typeof listener !== 'function')
      throw new FluxGateError(
        'FLUXGATE_ARGUMENT_INVALID',
        `The listener must be a function; received ${typeof listener}.`,
      )
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

/** The event of a ban. */
export const startedBan = ({ group: { ruleSetId, ruleId }, key, until }: StartedBan): GateEvents['ban'] => ({
  ruleSetId,
  ruleId,
  key,
  until: new Date(Math.ceil(until / ticksPerMs)).toISOString(),
})

/** The error of a `reload` event. */
export const asReloadError = (error: unknown): FluxGateError =>
  error instanceof FluxGateError
    ? error
    : new FluxGateError('FLUXGATE_RULES_UNREADABLE', messageOf(error), { cause: error })
