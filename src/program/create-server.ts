import { fileURLToPath } from 'node:url'
import type { RuleStore } from '../core/contracts/rule-store.js'
import { FluxGateError } from '../core/errors.js'
import type { FluxGate } from '../gate/flux-gate.js'
import { apiRoutes } from '../server/api-routes.js'
import { ApiServer, type ListenOptions } from '../server/api-server.js'
import { ConsoleFiles } from '../server/console-files.js'
import { EventStreams, type SampleSource } from '../server/event-streams.js'
import type { ApiParts } from '../server/parts.js'
import type { Route } from '../server/request/route.js'
import { healthRoutes } from '../server/routes/health-routes.js'
import type { ServerHealth } from '../server/server-gate.js'
import { type ServerLog, silentLog } from '../server/server-log.js'
import { type CandidateReport, withShownKeys } from '../telemetry/candidates/report.js'
import { showKey } from '../telemetry/key-digest.js'
import type { CollectedMetric } from '../telemetry/metrics.js'
import type { SeriesQuery } from '../telemetry/series/decision-series.js'
import type { SeriesReport } from '../telemetry/series/report.js'
import type { Statistics } from '../telemetry/statistics/statistics.js'
import { packageVersion } from './package-version.js'
import { readTlsPair } from './tls-pair.js'

export interface ServerOptions {
  readonly gate: FluxGate
  /** The rule store for viewing and editing rules. The gate must load its rules from it. Default: none; those routes return 501. */
  readonly rules?: RuleStore
  readonly statistics?: Statistics
  /** Sampled decisions for /api/events; default all decisions of the gate. */
  readonly onSample?: SampleSource
  /** Decisions over time for /api/stats/series. Workers report those of all workers. */
  readonly series?: (query: SeriesQuery) => Promise<SeriesReport>
  /** The comparison of a candidate by all processes; default that of the gate. Keys must be as they may be shown. */
  readonly candidateReport?: (ruleSetId: string) => Promise<CandidateReport | undefined>
  /** The metrics for /metrics. Workers report those of all workers. */
  readonly metrics?: () => Promise<readonly CollectedMetric[]>
  /** Health for /health/ready and the console; default the health of the gate. Workers report the health of all workers. */
  readonly health?: () => Promise<ServerHealth>
  /** Content of /info. Must not contain secrets. */
  readonly info?: () => object | Promise<object>
  /** Log of changes and failures; default none. */
  readonly logger?: ServerLog
  /** Token for every route. If missing or empty, the server listens on loopback only, and every local client is an administrator. */
  readonly adminToken?: string
  /** Token for checks and refunds only. */
  readonly checkToken?: string
  /** Paths of PEM files. */
  readonly tls?: { readonly cert: string; readonly key: string }
  /** Show keys in statistics and events instead of digests; default false. */
  readonly revealKeys?: boolean
}

export interface FluxGateServer {
  /** Listens on 127.0.0.1:8090 by default. Port 0 picks a free port. */
  listen(options?: ListenOptions): Promise<{ readonly url: string; readonly port: number }>
  /** Readiness probes fail from now on, and connections are closed after their response. */
  drain(): void
  /** Stops listening and waits at most `graceMs` (default 10,000) for requests in flight. Does not close the gate. */
  close(graceMs?: number): Promise<void>
}

/** Creates an HTTP server for a gate: decisions, rules, statistics, health and metrics. */
export function createServer(options: ServerOptions): FluxGateServer {
  const { gate, onSample, revealKeys = false } = options
  const events = new EventStreams({ gate, onSample, showKey: showKey(revealKeys) })
  return openServer(
    options,
    (parts) => apiRoutes(parts, events),
    () => events.close(),
  )
}

/** Creates an HTTP server with metrics and health only. */
export const createMetricsServer = (options: ServerOptions): FluxGateServer => openServer(options, healthRoutes)

function openServer(
  options: ServerOptions,
  routesOf: (parts: ApiParts) => readonly Route[],
  onDrain?: () => void,
): FluxGateServer {
  const { adminToken, checkToken, logger: log = silentLog, revealKeys = false } = options
  assertSendable('adminToken', adminToken)
  assertSendable('checkToken', checkToken)
  const { gate, rules, statistics, series, metrics, info, health = () => gate.health() } = options
  const parts = { gate, health, rules, statistics, series, metrics, info, log, showKey: showKey(revealKeys) }
  const { candidateReport = async (id) => withShownKeys(gate.candidates.report(id), showKey(revealKeys)) } = options
  const isDraining = (): boolean => server.isDraining
  const requiredTokens = { admin: Boolean(adminToken), check: Boolean(checkToken) }
  const console = new ConsoleFiles(fileURLToPath(new URL('../../dist/console', import.meta.url)))
  const routes = routesOf({ ...parts, candidateReport, version: packageVersion(), console, requiredTokens, isDraining })
  const tls = options.tls && readTlsPair('server.tls', options.tls)
  const server: ApiServer = new ApiServer({ routes, log, tls, adminToken, checkToken, onDrain })
  return server
}

/** Throws if the token cannot be sent in an HTTP header, because no client could ever authenticate. */
function assertSendable(name: string, token: string | undefined): void {
  if (token === undefined || /^[\x21-\x7e]*$/.test(token)) return
  const message = 'must be printable ASCII without spaces, because it is sent in an HTTP header'
  throw new FluxGateError('FLUXGATE_CONFIG_INVALID', `server.${name}: ${message}.`, {
    errors: [{ path: `server.${name}`, message }],
  })
}
