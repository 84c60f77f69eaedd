import type { BanStore } from '../core/contracts/ban-store.js'
import type { OverrideStore } from '../core/contracts/override-store.js'
import type { Decision } from '../core/decision.js'
import type { ExplainOptions, Explanation } from '../core/explain/explanation.js'
import type { CheckOptions, Handler } from '../core/handler.js'
import type { RequestContext } from '../core/request-context.js'
import type { BucketState } from '../core/reservations/reservation-storage.js'
import type { RuleSet } from '../core/rule.js'
import type { CandidateReport } from '../telemetry/candidates/report.js'
import type { Warnings } from '../validation/warnings.js'

/** One bucket, or all buckets of a rule if `key` is missing. */
export interface BucketSelector {
  readonly ruleSetId: string
  readonly ruleId: string
  readonly key?: string
}

/** The health of the store and the rules. `sinceAt` is the time of the last status change. */
export interface ServerHealth {
  readonly status: 'UP' | 'DEGRADED' | 'DOWN'
  readonly store: { readonly status: 'UP' | 'DOWN'; readonly sinceAt: number; readonly error: string | null }
  readonly rules: { readonly status: 'UP' | 'STALE'; readonly sinceAt: number | null; readonly error: string | null }
}

interface Events {
  decision: { readonly decision: Decision; readonly context: RequestContext; readonly durationMs: number }
  reload: { readonly changed: boolean; readonly error: Error | null }
  degraded: { readonly error: unknown }
  recovered: object
}

/** The part of a gate that the server uses. `FluxGate` implements it. */
export interface ServerGate extends Required<Handler> {
  /** Receives warnings about requests with unknown members. */
  readonly warnings: Pick<Warnings, 'warn'>
  readonly ruleSets: readonly RuleSet[]
  /** Present if the bucket store supports overrides. */
  readonly overrides?: OverrideStore | undefined
  /** Present if the bucket store supports bans. */
  readonly bans?: BanStore | undefined
  /** Throws if the rule set of a check does not charge its costs. Charges nothing. */
  validateCosts(options: Pick<CheckOptions, 'ruleSetId' | 'permits' | 'costs'>): void
  explain(context: RequestContext, options?: ExplainOptions): Promise<Explanation>
  /** Active candidates, and their comparison in this process. */
  readonly candidates: {
    get(ruleSetId: string): RuleSet | undefined
    report(ruleSetId: string): CandidateReport | undefined
  }
  /** The current state of one bucket, by band. Charges nothing. */
  look(what: Required<BucketSelector>): Promise<readonly BucketState[]>
  reset(what: BucketSelector): Promise<void>
  reload(): Promise<void>
  health(): Promise<ServerHealth>
  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): () => void
}
