import { FluxGateError } from '../core/errors.js'
import type { RuleStore } from '../core/rule-store.js'
import type { FluxGate } from '../gate/flux-gate.js'
import type { ApiParts } from '../server/api-parts.js'
import { apiRoutes } from '../server/api-routes.js'
import { ApiServer, type ListenOptions } from '../server/api-server.js'
import { EventStreams } from '../server/event-streams.js'
import type { Route } from '../server/request/route.js'
import { healthRoutes } from '../server/routes/health-routes.js'
import type { ServedHealth } from '../server/served-gate.js'
import { type ServerLog, silentLog } from '../server/server-log.js'
import { showKey } from '../telemetry/key-digest.js'
import type { Statistics } from '../telemetry/statistics/statistics.js'
import { packageVersion } from './package-version.js'
import { readTlsPair } from './tls-pair.js'

export interface ServerOptions {
  readonly gate: FluxGate
  /** Where rules are kept and edited; the gate has to load them from there too. Left out: they are not shown. */
  readonly rules?: RuleStore
  readonly statistics?: Statistics
  /** Prometheus text for /metrics. */
  readonly metrics?: () => string | Promise<string>
  /** What /health/ready and the console report; default that of the gate. Workers report the health of all of them. */
  readonly health?: () => Promise<ServedHealth>
  /** What /info shows; nothing secret. */
  readonly info?: () => object | Promise<object>
  /** Changes and failures; default nowhere. */
  readonly logger?: ServerLog
  /** Opens every route. Left out, or empty: the server listens on this machine only, and everybody on it may do everything. */
  readonly adminToken?: string
  /** Opens checks and refunds. */
  readonly checkToken?: string
  /** Files in PEM. */
  readonly tls?: { readonly cert: string; readonly key: string }
  /** Show identities as they are in statistics and events, instead of as digests; default false. */
  readonly revealKeys?: boolean
}

export interface FluxGateServer {
  /** Default 127.0.0.1:8090; port 0 for any that is free. */
  listen(options?: ListenOptions): Promise<{ readonly url: string; readonly port: number }>
  /** Says from now on that it is not ready, and closes connections after their request. */
  drain(): void
  /** Finishes what is under way for at most `graceMs`, 10 seconds unless said otherwise. The gate stays open. */
  close(graceMs?: number): Promise<void>
}

/** A gate, and what belongs to it, as a server that any language asks over HTTP. */
export function createServer(options: ServerOptions): FluxGateServer {
  const events = new EventStreams({ gate: options.gate, showKey: showKey(options.revealKeys ?? false) })
  return openServer(
    options,
    (parts) => apiRoutes(parts, events),
    () => events.close(),
  )
}

/** Metrics and health alone, for who runs a gate that nobody asks over HTTP. */
export const createMetricsServer = (options: ServerOptions): FluxGateServer => openServer(options, healthRoutes)

function openServer(
  options: ServerOptions,
  routesOf: (parts: ApiParts) => readonly Route[],
  onDrain?: () => void,
): FluxGateServer {
  const { adminToken, checkToken, logger: log = silentLog, revealKeys = false } = options
  assertSendable('adminToken', adminToken)
  assertSendable('checkToken', checkToken)
  const { gate, rules, statistics, metrics, info, health = () => gate.health() } = options
  const parts = { gate, health, rules, statistics, metrics, info, log, showKey: showKey(revealKeys) }
  const isDraining = (): boolean => server.isDraining
  const asked = { admin: Boolean(adminToken), check: Boolean(checkToken) }
  const routes = routesOf({ ...parts, version: packageVersion(), asked, isDraining })
  const tls = options.tls && readTlsPair('server.tls', options.tls)
  const server: ApiServer = new ApiServer({ routes, log, tls, adminToken, checkToken, onDrain })
  return server
}

/** What a header cannot carry would never be right, and nobody would know why. */
function assertSendable(name: string, token: string | undefined): void {
  if (token === undefined || /^[\x21-\x7e]*$/.test(token)) return
  const message = 'has a space, or a character that HTTP headers cannot carry; allowed: visible ASCII'
  throw new FluxGateError('FLUXGATE_CONFIG_INVALID', `server.${name}: ${message}.`, {
    errors: [{ path: `server.${name}`, message }],
  })
}
