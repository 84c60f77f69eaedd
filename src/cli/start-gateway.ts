import type { AddressInfo } from 'node:net'
import { relative, resolve } from 'node:path'
import { type Config, loadConfig } from '../app/config.js'
import { createGateway, type RunningGateway } from '../app/create-gateway.js'
import type { DemoHints } from '../app/demo-hints.js'
import type { FluxGate } from '../app/flux-gate.js'
import { openAccessLog } from '../app/gateway-access-log.js'
import { watchRoutes } from '../app/gateway-reload.js'
import type { RouteDefinition } from '../app/gateway-schema.js'
import { configuredRules } from '../app/run-rules.js'
import type { Telemetry } from '../app/run-telemetry.js'
import { messageOf } from '../core/errors.js'
import { given } from '../core/given.js'
import type { RuleSet } from '../core/rule.js'
import type { RuleStore } from '../core/rule-store.js'
import { listen, urlOf } from './start-listen.js'
import type { StartReport } from './start-report.js'
import { refuse } from './start-stop.js'

export interface StartArguments {
  readonly config?: string
  readonly rules?: string
  readonly port?: number
  readonly host?: string
  readonly json?: true
}

export interface GatewayPlan {
  readonly config: Config
  readonly options: StartArguments
  readonly report: StartReport
  readonly workers: number
  readonly warnings?: readonly string[]
  /** Where the configuration names none. */
  readonly exampleRoutes: readonly RouteDefinition[]
  hints(ruleSets: readonly RuleSet[]): Promise<DemoHints | null>
  /** What runs beside the gateway, on the same gate. */
  readonly beside?: Beside | undefined
  /** Called with how to stop, and how to reload. */
  onStart(close: () => Promise<void>, reload: () => void): void
}

export interface Beside {
  /** What can be asked of it. */
  readonly serves: 'API' | 'METRICS'
  readonly observer: Telemetry['recorder']
  /** Where it listens, or why it cannot; rejects if it must not. */
  start(gate: FluxGate, rules: RuleStore | undefined): Promise<{ readonly url: string } | { readonly problem: string }>
  close(): Promise<void>
}

export const readConfig = (options: StartArguments): Promise<Config> =>
  loadConfig({ path: options.config, env: process.env, cwd: process.cwd() })

/** Listens, says so, and takes over routes and rules as they change. */
export async function startGateway(plan: GatewayPlan): Promise<void> {
  const { config, options, report, workers, exampleRoutes, beside } = plan
  const routesOf = ({ gateway }: Config): readonly RouteDefinition[] => gateway.routes ?? exampleRoutes
  const rules = configuredRules(config, options.rules && shownPath(options.rules))
  const accessLog =
    config.gateway.accessLog === undefined
      ? undefined
      : openAccessLog(config.gateway.accessLog, (error) => report.trouble(`The access log: ${error.message}`))
  // Also when it does not come to run: a connection that is left open would keep the process from ending.
  const closeWith = async (running: RunningGateway | undefined): Promise<void> => {
    await Promise.all([running?.close(), beside?.close()])
    await rules?.close()
    await accessLog?.close()
  }
  const running = await createGateway(config, {
    rules,
    routes: routesOf(config),
    log: accessLog?.log,
    observer: beside?.observer,
  }).catch(async (error: unknown) => {
    await closeWith(undefined)
    throw error
  })
  const { gate, server } = running
  const close = (): Promise<void> => closeWith(running)
  const { host, port } = { ...config.gateway, ...given({ host: options.host, port: options.port }) }
  const problem = await listen(server, port, host)
  const other = problem === undefined ? await startBeside(plan, gate, rules, close) : undefined
  if (problem !== undefined || (other !== undefined && 'problem' in other)) {
    await close()
    return refuse(problem ?? (other as { readonly problem: string }).problem)
  }
  const shownRules =
    options.rules === undefined && config.rules.type !== 'file'
      ? (rules?.source ?? '')
      : shownPath(options.rules ?? config.rules.path)
  gate.on('reload', ({ changed, error }) => {
    if (!running.isRerouting)
      report.reloaded({ rules: shownRules, ruleCount: countRules(gate.ruleSets), changed, error })
  })
  // What runs beside the gateway has a log of its own for this.
  if (beside === undefined) tellStore(gate, report)
  const file = config.file === undefined ? null : shownPath(config.file)
  const routes = watchRoutes({
    config,
    running,
    load: () => readConfig(options),
    routesOf,
    onReload: (result) => report.rerouted({ config: file ?? '', ...result }),
  })
  const stop = (): Promise<void> => {
    routes.stop()
    return close()
  }
  plan.onStart(stop, () => {
    routes.reload()
    renewCertificate(running, report)
    // What is wrong with the rules is told by the event.
    void gate.reload().catch(() => {})
  })
  const hints = await plan.hints(gate.ruleSets)
  report.started({
    url: urlOf(server.address() as AddressInfo, config.gateway.tlsCert !== undefined),
    api: beside?.serves === 'API' ? (other?.url ?? null) : null,
    metrics: beside?.serves === 'METRICS' ? (other?.url ?? null) : null,
    needsToken: config.server.adminToken !== undefined,
    rules: rules === undefined ? null : shownRules,
    rulesType: options.rules === undefined ? config.rules.type : 'file',
    ruleCount: countRules(gate.ruleSets),
    config: config.gateway.routes === undefined ? null : file,
    routeCount: routesOf(config).length,
    workers,
    warnings: [...(plan.warnings ?? []), ...unlimited(running, config), ...apart(config, workers)],
    hints,
  })
}

async function startBeside(
  { beside }: GatewayPlan,
  gate: FluxGate,
  rules: RuleStore | undefined,
  close: () => Promise<void>,
) {
  try {
    return await beside?.start(gate, rules)
  } catch (error) {
    await close()
    throw error
  }
}

function renewCertificate(running: RunningGateway, report: StartReport): void {
  try {
    running.renewCertificate()
  } catch (error) {
    report.trouble(`the old certificate stays: ${messageOf(error)}`)
  }
}

function tellStore(gate: FluxGate, report: StartReport): void {
  gate.on('degraded', ({ error }) => report.trouble(`the bucket store fails: ${messageOf(error)}`))
  gate.on('recovered', () => report.trouble('the bucket store answers again'))
}

function unlimited({ gate, unlimitedRoutes: routes }: RunningGateway, { ratelimit }: Config): string[] {
  if (countRules(gate.ruleSets) === 0 && ratelimit.missingRuleBehavior === 'ALLOW')
    return ['nothing is limited: there are no rules, and no route has a RateLimiter filter.']
  if (routes.length === 0) return []
  return [`nothing limits ${routes.join(', ')}: no RateLimiter filter, and ratelimit.filterEnabled is not true.`]
}

export function apart({ store }: Config, workers: number): string[] {
  if (workers === 1 || store.type !== 'memory') return []
  return [`buckets are in memory, so each of the ${workers} workers counts by itself. With Redis they count together.`]
}

export const countRules = (ruleSets: readonly RuleSet[]): number =>
  ruleSets.reduce((sum, { rules }) => sum + rules.length, 0)

export function shownPath(path: string): string {
  const fromHere = relative(process.cwd(), resolve(path))
  return fromHere === '' || fromHere.startsWith('..') ? resolve(path) : fromHere
}
