import type { BandDecision, Decision } from '../core/decision.js'
import type { Handler } from '../core/handler.js'
import type { OverrideStore } from '../core/override-store.js'
import type { RequestContext } from '../core/request-context.js'
import type { RuleSet } from '../core/rule.js'

/** One bucket, or all of a rule where no key is named. */
export interface BucketChoice {
  readonly ruleSetId: string
  readonly ruleId: string
  readonly key?: string
}

/** What this process depends on, and since when it is as it is. */
export interface ServedHealth {
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

/** What the server needs of a gate. `FluxGate` has all of it. */
export interface ServedGate extends Required<Handler> {
  readonly ruleSets: readonly RuleSet[]
  /** Present if the store keeps exceptions to rules. */
  readonly overrides?: OverrideStore | undefined
  /** One bucket as it stands, band by band; charges nothing. */
  look(what: Required<BucketChoice>): Promise<readonly BandDecision[]>
  reset(what: BucketChoice): Promise<void>
  reload(): Promise<void>
  health(): Promise<ServedHealth>
  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): () => void
}
