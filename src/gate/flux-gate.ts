import type { BandDecision, Decision } from '../core/decision.js'
import type { CheckOptions, Handler } from '../core/handler.js'
import type { OverrideStore } from '../core/override-store.js'
import type { RequestContext } from '../core/request-context.js'
import type { RuleSet } from '../core/rule.js'
import type { GateEvents, GateListener } from './events.js'
import type { GateHealth } from './health/gate-health.js'

/** One identity under one rule. */
export interface BucketPlace {
  readonly ruleSetId: string
  readonly ruleId: string
  readonly key: string
}

export interface FluxGate extends Handler {
  check(context: RequestContext, options?: CheckOptions): Promise<Decision>
  /** As `check`, but returns a plain Decision, or throws, where the buckets are in this process. Middleware uses it. */
  decide(context: RequestContext, options?: CheckOptions): Decision | Promise<Decision>
  /** The buckets of one identity under one rule as they stand, band by band; charges nothing. */
  look(what: BucketPlace): Promise<readonly BandDecision[]>
  /** Forgets one identity of a rule, or all buckets of a rule, or of a whole rule set. */
  reset(what: Pick<BucketPlace, 'ruleSetId'> & Partial<BucketPlace>): Promise<void>
  /** Loads the rules again; rejects with what is wrong with them, in which case the old ones stay. */
  reload(): Promise<void>
  /** The rule sets in force. */
  readonly ruleSets: readonly RuleSet[]
  /** Exceptions to rules, where the store keeps them. */
  readonly overrides?: OverrideStore | undefined
  /** The result stops listening. */
  on<Name extends keyof GateEvents>(name: Name, listener: GateListener<Name>): () => void
  /** The state of the gate. Probes the store at most once per second, and waits no longer than the deadline of a call. */
  health(): Promise<GateHealth>
  /** Stops reloading, sends away those who wait, and closes a store that was made here. */
  close(): Promise<void>
}
