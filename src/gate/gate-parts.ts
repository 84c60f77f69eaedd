import type { BucketStore } from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import type { RuleSetProvider } from '../core/contracts/rule-set-provider.js'
import type { RuleStore } from '../core/contracts/rule-store.js'
import type { LoadedRules } from '../rules/loaded-rules.js'
import type { DecisionObserver } from '../telemetry/decision-observer.js'
import type { GateMetrics } from '../telemetry/gate-metrics.js'
import type { Warnings } from '../validation/warnings.js'

/** A resource that was opened for a gate. */
export interface Closable {
  close(): Promise<void>
}

/** The parts of a gate, all opened and validated. */
export interface GateParts {
  readonly clock: Clock
  readonly provider: RuleSetProvider
  /** The last valid rules of the provider. */
  readonly loadedRules: LoadedRules
  readonly store: BucketStore
  /** Resources that were opened for the gate and are closed with it. */
  readonly opened: readonly Closable[]
  /** Set if the rules can be edited. */
  readonly ruleStore?: RuleStore | undefined
  readonly observer?: DecisionObserver | undefined
  readonly warnings: Warnings
  /** Undefined if metrics are off. */
  readonly metrics?: GateMetrics | undefined
}
