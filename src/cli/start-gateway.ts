import type { AddressInfo } from 'node:net'
import { relative, resolve } from 'node:path'
import { type Config, loadConfig } from '../app/config.js'
import { unusedVariables } from '../app/config-absent.js'
import { createGateway } from '../app/create-gateway.js'
import type { DemoHints } from '../app/demo-hints.js'
import { openAccessLog } from '../app/gateway-access-log.js'
import { watchRoutes } from '../app/gateway-reload.js'
import type { RouteDefinition } from '../app/gateway-schema.js'
import { given } from '../core/given.js'
import type { RuleSet } from '../core/rule.js'
import { exitStatus } from './exit-status.js'
import { paintFor } from './output.js'
import { listen, urlOf } from './start-listen.js'
import type { StartReport } from './start-report.js'

export interface GatewayArguments {
  readonly config?: string
  readonly rules?: string
  readonly port?: number
  readonly host?: string
  readonly json?: true
}

export interface GatewayPlan {
  readonly config: Config
  readonly options: GatewayArguments
  readonly report: StartReport
  readonly workers: number
  readonly warnings?: readonly string[]
  /** Where the configuration names none. */
  readonly exampleRoutes: readonly RouteDefinition[]
  hints(ruleSets: readonly RuleSet[]): Promise<DemoHints | null>
  /** Called with how to stop. */
  onStart(close: () => Promise<void>): void
}

export const readConfig = (options: GatewayArguments): Promise<Config> =>
  loadConfig({ path: options.config, env: process.env, cwd: process.cwd() })

/** Listens, says so, and takes over routes and rules as they change. */
export async function startGateway(plan: GatewayPlan): Promise<void> {
  const { config, options, report, workers, exampleRoutes } = plan
  const routesOf = ({ gateway }: Config): readonly RouteDefinition[] => gateway.routes ?? exampleRoutes
  const rules = shownPath(options.rules ?? config.rules.path)
  const accessLog =
    config.gateway.accessLog === undefined
      ? undefined
      : openAccessLog(config.gateway.accessLog, (error) => report.trouble(`The access log: ${error.message}`))
  const running = await createGateway(config, {
    routes: routesOf(config),
    log: accessLog?.log,
    ...(options.rules !== undefined && { rulesPath: rules }),
  })
  const { gate, server } = running
  const { host, port } = { ...config.gateway, ...given({ host: options.host, port: options.port }) }
  const problem = await listen(server, port, host)
  if (problem !== undefined) {
    process.stderr.write(`${paintFor(process.stderr)('red', 'error:')} ${problem}\n`)
    process.exitCode = exitStatus.no
    await running.close()
    return
  }
  gate.on('reload', ({ changed, error }) => {
    if (!running.isRerouting) report.reloaded({ rules, ruleCount: countRules(gate.ruleSets), changed, error })
  })
  const file = config.file === undefined ? null : shownPath(config.file)
  const stopWatching = watchRoutes({
    config,
    running,
    load: () => readConfig(options),
    routesOf,
    onReload: (result) => report.rerouted({ config: file ?? '', ...result }),
  })
  plan.onStart(async () => {
    stopWatching()
    await running.close()
    await accessLog?.close()
  })
  const hints = await plan.hints(gate.ruleSets)
  report.started({
    url: urlOf(server.address() as AddressInfo),
    rules: running.hasRules ? rules : null,
    ruleCount: countRules(gate.ruleSets),
    config: config.gateway.routes === undefined ? null : file,
    routeCount: routesOf(config).length,
    workers,
    warnings: [
      ...unusedVariables(process.env),
      ...(plan.warnings ?? []),
      ...unlimited(running.unlimitedRoutes),
      ...apart(config, workers),
    ],
    hints,
  })
}

function unlimited(routes: readonly string[]): string[] {
  if (routes.length === 0) return []
  return [`nothing limits ${routes.join(', ')}: no RateLimiter filter, and ratelimit.filterEnabled is not true.`]
}

function apart({ store }: Config, workers: number): string[] {
  if (workers === 1 || store.type !== 'memory') return []
  return [`buckets are in memory, so each of the ${workers} workers counts by itself. With Redis they count together.`]
}

const countRules = (ruleSets: readonly RuleSet[]): number => ruleSets.reduce((sum, { rules }) => sum + rules.length, 0)

export function shownPath(path: string): string {
  const fromHere = relative(process.cwd(), resolve(path))
  return fromHere === '' || fromHere.startsWith('..') ? resolve(path) : fromHere
}
