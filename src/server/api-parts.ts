import type { RuleStore } from '../core/rule-store.js'
import type { ShowKey } from '../telemetry/key-digest.js'
import type { Statistics } from '../telemetry/statistics/statistics.js'
import type { AskedTokens } from './openapi/openapi.js'
import type { ServedGate, ServedHealth } from './served-gate.js'
import type { ServerLog } from './server-log.js'

/** Everything the routes need. Routes whose optional part is missing respond with 501. */
export interface ApiParts {
  readonly gate: ServedGate
  /** The combined health of all processes that share the port. */
  readonly health: () => Promise<ServedHealth>
  /** The rule store for edits. The gate must load its rules from the same store. */
  readonly rules?: RuleStore | undefined
  readonly statistics?: Statistics | undefined
  /** Prometheus text. */
  readonly metrics?: (() => string | Promise<string>) | undefined
  /** Version, store types and similar facts. Must not contain secrets. */
  readonly info?: (() => object | Promise<object>) | undefined
  readonly log: ServerLog
  readonly showKey: ShowKey
  readonly version: string
  /** The tokens that requests need, for the OpenAPI document. */
  readonly asked: AskedTokens
  isDraining(): boolean
}
