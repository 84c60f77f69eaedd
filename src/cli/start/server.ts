import type { Config } from '../../config/config.js'
import { omitUndefined } from '../../core/omit-undefined.js'
import { gateOptions } from '../../gate/configured-options.js'
import { openGate } from '../../gate/create-flux-gate.js'
import { openLog } from '../../program/log.js'
import { configuredRules } from '../../program/rules.js'
import { serverOf } from '../../program/server.js'
import { createTelemetry } from '../../program/telemetry.js'
import { initialRules, shareRules } from '../../program/workers/initial-rules.js'
import { isWorker } from '../../program/workers/workers.js'
import { fileRuleStore } from '../../rules/file/file-rule-store.js'
import { apiListener } from './api-listener.js'
import type { StartOptions } from './options.js'
import type { StartReport } from './report.js'
import { failToStart } from './signals.js'
import { countRules, openTelemetryWarning, rulesLabel, separateBucketsWarning } from './summary.js'

export interface ServerStart {
  readonly config: Config
  readonly options: StartOptions
  readonly report: StartReport
  readonly workers: number
  /** Called once the server listens, with functions that stop and reload it. */
  onStart(close: () => Promise<void>, reload: () => void): void
}

/** Starts the server without a gateway, reports its URL, and follows changes of the rules. */
export async function startServer({ config, options, report, workers, onStart }: ServerStart): Promise<void> {
  const log = openLog(config)
  const telemetry = createTelemetry(config, log)
  const rules = configuredRules(config, options.rules) ?? fileRuleStore(config.rules.path)
  const shown = rulesLabel(options, config, rules.source)
  const hooks = { ...telemetry.observer, onUnreachable: (message: string) => log.warn(message) }
  const starting = isWorker() ? initialRules(rules) : undefined
  const used = starting?.provider ?? rules
  const gate = await openGate({ ...gateOptions(config), rules: used, logger: log }, hooks).catch(
    async (error: unknown) => {
      // An open connection would keep the process alive.
      await telemetry.close()
      await rules.close()
      throw error
    },
  )
  telemetry.follow(gate)
  const { drainTimeout } = config.server
  const where = { ...config.server, ...omitUndefined({ host: options.host, port: options.port }) }
  const listener = apiListener(
    config,
    serverOf(config, { gate, rules, telemetry, log }),
    { gate, log },
    {
      address: { ...where, listener: 'SERVER', option: '--port' },
      drainTimeout,
      grpc: options,
    },
  )
  const close = async (): Promise<void> => {
    await listener.close()
    await telemetry.close()
    await gate.close()
    await rules.close()
  }
  const urls = await listener.start().catch(async (error: unknown) => {
    await close()
    throw error
  })
  if ('problem' in urls) {
    await close()
    return failToStart(urls.problem)
  }
  gate.on('reload', ({ changed, error }) =>
    report.reloaded({ rules: shown.rules, ruleCount: countRules(gate.ruleSets), changed, error }),
  )
  const reload = (): void => void gate.reload().catch(() => {})
  onStart(close, reload)
  if (starting !== undefined) shareRules(gate)
  if (starting?.isStale) reload()
  report.started({
    url: null,
    ...urls,
    metrics: null,
    needsToken: config.server.adminToken !== undefined,
    ...shown,
    ruleCount: countRules(gate.ruleSets),
    config: null,
    routeCount: 0,
    workers,
    warnings: [...separateBucketsWarning(config, workers), ...openTelemetryWarning()],
    hints: null,
  })
}
