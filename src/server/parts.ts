import type { RuleStore } from '../core/contracts/rule-store.js'
import type { CandidateReport } from '../telemetry/candidates/report.js'
import type { ShowKey } from '../telemetry/key-digest.js'
import type { CollectedMetric } from '../telemetry/metrics.js'
import type { SeriesQuery } from '../telemetry/series/decision-series.js'
import type { SeriesReport } from '../telemetry/series/report.js'
import type { Statistics } from '../telemetry/statistics/statistics.js'
import type { ConsoleFiles } from './console-files.js'
import type { RequiredTokens } from './openapi/openapi.js'
import type { ServerGate, ServerHealth } from './server-gate.js'
import type { ServerLog } from './server-log.js'

/** Everything the routes need. Routes whose optional part is missing respond with 501. */
export interface ApiParts {
  readonly gate: ServerGate
  /** The combined health of all processes that share the port. */
  readonly health: () => Promise<ServerHealth>
  /** The rule store for edits. The gate must load its rules from the same store. */
  readonly rules?: RuleStore | undefined
  readonly statistics?: Statistics | undefined
  /** Decisions over time, of all processes that share the port. */
  readonly series?: ((query: SeriesQuery) => Promise<SeriesReport>) | undefined
  /** The comparison of a candidate by all processes, with keys as they may be shown; undefined without a candidate. */
  readonly candidateReport: (ruleSetId: string) => Promise<CandidateReport | undefined>
  /** The metrics of all processes that share the port. */
  readonly metrics?: (() => Promise<readonly CollectedMetric[]>) | undefined
  /** Version, store types and similar facts. Must not contain secrets. */
  readonly info?: (() => object | Promise<object>) | undefined
  readonly log: ServerLog
  readonly showKey: ShowKey
  readonly version: string
  readonly console: ConsoleFiles
  /** The tokens that requests need, for the OpenAPI document. */
  readonly requiredTokens: RequiredTokens
  isDraining(): boolean
}
