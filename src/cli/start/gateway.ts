import type { AddressInfo } from 'node:net'
import type { Config } from '../../config/config.js'
import type { RuleStore } from '../../core/contracts/rule-store.js'
import { messageOf } from '../../core/errors.js'
import { omitUndefined } from '../../core/omit-undefined.js'
import type { RuleSet } from '../../core/rule.js'
import type { FluxGate } from '../../gate/flux-gate.js'
import type { RouteDefinition } from '../../gateway/routes/route-schema.js'
import type { DemoExamples } from '../../program/demo/examples.js'
import { type OpenAccessLog, openAccessLog } from '../../program/gateway/access-log.js'
import { createGateway, type RunningGateway } from '../../program/gateway/create-gateway.js'
import { watchRoutes } from '../../program/gateway/reload.js'
import { openLog } from '../../program/log.js'
import { configuredRules } from '../../program/rules.js'
import { type InitialRules, initialRules, shareRules } from '../../program/workers/initial-rules.js'
import { isWorker } from '../../program/workers/workers.js'
import { readConfig } from '../options/read-config.js'
import { displayPath } from '../output/output.js'
import type { CompanionServer } from './companion-server.js'
import { listen, urlOf } from './listen.js'
import type { StartOptions } from './options.js'
import type { StartReport } from './report.js'
import { failToStart } from './signals.js'
import {
  countRules,
  openTelemetryWarning,
  rulesLabel,
  separateBucketsWarning,
  unlimitedRoutesWarning,
} from './summary.js'

export interface GatewayStart {
  readonly config: Config
  readonly options: StartOptions
  readonly report: StartReport
  readonly workers: number
  readonly warnings?: readonly string[]
  /** Used if the configuration has no routes. */
  readonly exampleRoutes: readonly RouteDefinition[]
  hints(ruleSets: readonly RuleSet[]): Promise<DemoExamples | null>
  /** A server that runs next to the gateway, on the same gate. */
  readonly companion?: CompanionServer | undefined
  /** Called once the gateway listens, with functions that stop and reload it. */
  onStart(close: () => Promise<void>, reload: () => void): void
}

/** Starts the gateway, reports its URLs, and follows changes of routes and rules. */
export async function startGateway(plan: GatewayStart): Promise<void> {
  const { config, options, report, companion } = plan
  const opened = await open(plan)
  const { running, rules } = opened
  const listening = await listenAll(plan, opened)
  if ('problem' in listening) {
    await opened.close()
    return failToStart(listening.problem)
  }
  const shown = rulesLabel(options, config, rules?.source ?? '')
  follow(plan, opened, shown.rules)
  const { gate } = running
  report.started({
    url: listening.url,
    api: companion?.serves === 'API' ? listening.companionUrl : null,
    metrics: companion?.serves === 'METRICS' ? listening.companionUrl : null,
    grpc: listening.grpc,
    needsToken: config.server.adminToken !== undefined,
    rules: rules === undefined ? null : shown.rules,
    rulesType: shown.rulesType,
    ruleCount: countRules(gate.ruleSets),
    config: config.gateway.routes === undefined ? null : fileOf(config),
    routeCount: routesOf(plan, config).length,
    workers: plan.workers,
    warnings: [
      ...(plan.warnings ?? []),
      ...unlimitedRoutesWarning(running, config),
      ...separateBucketsWarning(config, plan.workers),
      ...openTelemetryWarning(),
    ],
    hints: await plan.hints(gate.ruleSets),
  })
}

const routesOf = ({ exampleRoutes }: GatewayStart, { gateway }: Config): readonly RouteDefinition[] =>
  gateway.routes ?? exampleRoutes

const fileOf = ({ file }: Config): string | null => (file === undefined ? null : displayPath(file))

interface Opened {
  readonly starting: InitialRules | undefined
  readonly running: RunningGateway
  readonly rules: RuleStore | undefined
  close(): Promise<void>
}

async function open(plan: GatewayStart): Promise<Opened> {
  const { config, options, report, companion } = plan
  let rules: RuleStore | undefined
  let accessLog: OpenAccessLog | undefined
  let running: RunningGateway | undefined
  // Also called if the start fails: an open connection would keep the process alive.
  const close = async (): Promise<void> => {
    await Promise.all([running?.close(), companion?.close()])
    await rules?.close()
    await accessLog?.close()
  }
  try {
    rules = configuredRules(config, options.rules && displayPath(options.rules))
    const { accessLog: place } = config.gateway
    if (place !== undefined)
      accessLog = openAccessLog(place, (error) => report.warning(`cannot write the access log: ${error.message}`))
    const routes = routesOf(plan, config)
    const starting = rules && isWorker() ? initialRules(rules) : undefined
    running = await createGateway(config, {
      rules: starting?.provider ?? rules,
      routes,
      log: accessLog?.log,
      ...companion?.observer,
      logger: openLog(config),
      onUnreachable: (message) => report.warning(message),
    })
    return { running, rules, starting, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** Listens with the gateway first, then with the server next to it. */
async function listenAll({ config, options, companion }: GatewayStart, { running, rules, close }: Opened) {
  const { gate, server } = running
  const { host, port } = { ...config.gateway, ...omitUndefined({ host: options.host, port: options.port }) }
  const problem = await listen(server, port, host)
  if (problem !== undefined) return { problem }
  try {
    const other = await companion?.start(gate, rules)
    if (other !== undefined && 'problem' in other) return other
    const url = urlOf(server.address() as AddressInfo, config.gateway.tlsCert !== undefined)
    return { url, companionUrl: other?.api ?? null, grpc: other?.grpc ?? null }
  } catch (error) {
    await close()
    throw error
  }
}

/** Reports changes while the gateway runs, and reloads on request. */
function follow(plan: GatewayStart, { running, starting, close }: Opened, rules: string): void {
  const { config, options, report } = plan
  const { gate } = running
  gate.on('reload', ({ changed, error }) => {
    if (!running.isRerouting) report.reloaded({ rules, ruleCount: countRules(gate.ruleSets), changed, error })
  })
  // The telemetry of a companion server logs these events already.
  if (plan.companion === undefined) reportStoreState(gate, report)
  const routes = watchRoutes({
    config,
    running,
    load: () => readConfig(options),
    routesOf: (changed) => routesOf(plan, changed),
    onReload: (result) => report.rerouted({ config: fileOf(config) ?? '', ...result }),
  })
  const stop = (): Promise<void> => {
    routes.stop()
    return close()
  }
  plan.onStart(stop, () => {
    routes.reload()
    renewCertificate(running, report)
    // Errors are reported through the 'reload' event.
    void gate.reload().catch(() => {})
  })
  if (starting !== undefined) shareRules(gate)
  if (starting?.isStale) void gate.reload().catch(() => {})
}

function renewCertificate(running: RunningGateway, report: StartReport): void {
  try {
    running.renewCertificate()
  } catch (error) {
    report.warning(`cannot reload the certificate, the current one stays in use: ${messageOf(error)}`)
  }
}

function reportStoreState(gate: FluxGate, report: StartReport): void {
  gate.on('degraded', ({ error }) => report.warning(`bucket store failed: ${messageOf(error)}`))
  gate.on('recovered', () => report.warning('bucket store recovered'))
}
