import type { RuleStore } from '../core/rule-store.js'
import type { ShowKey } from '../telemetry/key-digest.js'
import type { Statistics } from '../telemetry/statistics/statistics.js'
import type { AskedTokens } from './openapi/openapi.js'
import type { ServedGate, ServedHealth } from './served-gate.js'
import type { ServerLog } from './server-log.js'

/** What the routes are about. What is left out, the routes that need it say so. */
export interface ApiParts {
  readonly gate: ServedGate
  /** The health of all processes that share the port. */
  readonly health: () => Promise<ServedHealth>
  /** Where rules are kept and edited; the gate loads them from there. */
  readonly rules?: RuleStore | undefined
  readonly statistics?: Statistics | undefined
  /** Prometheus text. */
  readonly metrics?: (() => string | Promise<string>) | undefined
  /** Version, kinds of stores, and the like; nothing secret. */
  readonly info?: (() => object | Promise<object>) | undefined
  readonly log: ServerLog
  readonly showKey: ShowKey
  readonly version: string
  /** For the OpenAPI document: which tokens requests need. */
  readonly asked: AskedTokens
  isDraining(): boolean
}
