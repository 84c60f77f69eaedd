import { availableParallelism } from 'node:os'
import { Command, Option } from 'commander'
import type { Config } from '../app/config.js'
import { isWorker, startWorkers, stopWhenTold, tellPrimary, type WorkerMessage } from '../app/gateway-workers.js'
import { exitStatus } from './exit-status.js'
import { UsageError } from './failure.js'
import { wholeNumber } from './option-values.js'
import { type GatewayArguments, readConfig, startGateway } from './start-gateway.js'
import { jsonReport, type StartReport, textReport } from './start-report.js'
import { stopOnSignal } from './start-stop.js'

interface GatewayOptions extends GatewayArguments {
  readonly workers?: number
}

const examples = `
Examples:
  $ fluxgate gateway
      the routes of ./fluxgate.yaml on http://127.0.0.1:8080
  $ fluxgate gateway --config conf/gateway.yaml --host 0.0.0.0 --port 80
  $ FLUXGATE_REDIS_URI=redis://127.0.0.1:6379 fluxgate gateway --workers 4
      four processes that count together

A route is { id, uri, predicates: [Path=/api/**], filters: [RateLimiter=api] } under gateway.routes.
Exit status: 0 stopped by a signal, 1 the port is not to be had, 2 rules or configuration are mistaken.
`

export function gatewayCommand(): Command {
  return new Command('gateway')
    .description('Run the gateway: a reverse proxy whose routes and limits are in fluxgate.yaml.')
    .option('--config <file>', 'settings and routes; ./fluxgate.yaml')
    .option('--rules <file>', 'the rules, YAML or JSON; ./rules.yaml unless the settings name others')
    .addOption(new Option('--port <n>', 'where to listen; 8080, 0 for any').argParser(wholeNumber(0, 65_535)))
    .option('--host <address>', 'on which address; 127.0.0.1, 0.0.0.0 for all')
    .addOption(new Option('--workers <n>', 'how many processes share the work; 1').argParser(wholeNumber(1, 256)))
    .option('--json', 'print one JSON document per line')
    .addHelpText('after', examples)
    .action(gateway)
}

async function gateway(options: GatewayOptions): Promise<void> {
  const config = await readConfig(options)
  if (config.gateway.routes === undefined || config.gateway.routes.length === 0)
    throw new UsageError(
      'There are no routes. Name them in fluxgate.yaml, under gateway.routes; `fluxgate start` has an example of its own.',
    )
  const report = options.json ? jsonReport : textReport
  const workers = workerCount(options, config)
  if (workers === 1) await run(options, config, 1, report, (close) => stopOnSignal(close, report.stopping))
  else if (isWorker()) await work(options, config, workers)
  else supervise(workers, report)
}

const workerCount = ({ workers }: GatewayOptions, { gateway }: Config): number => {
  const asked = workers ?? gateway.workers
  return asked === 'auto' ? availableParallelism() : asked
}

function run(
  options: GatewayOptions,
  config: Config,
  workers: number,
  report: StartReport,
  onStart: (close: () => Promise<void>) => void,
): Promise<void> {
  return startGateway({ config, options, report, workers, exampleRoutes: [], hints: async () => null, onStart })
}

async function work(options: GatewayOptions, config: Config, workers: number): Promise<void> {
  let hasStarted = false
  try {
    await run(options, config, workers, spokenReport, (close) => {
      hasStarted = true
      stopWhenTold(close)
    })
  } finally {
    // One that does not serve ends, with its own status, instead of waiting to be told to.
    if (!hasStarted) process.channel?.unref()
  }
}

/** What a worker would print, one of them says for all. */
const spokenReport: StartReport = {
  started: (value) => tellPrimary({ event: 'started', value }),
  reloaded: (value) => tellPrimary({ event: 'reloaded', value: told(value) }),
  rerouted: (value) => tellPrimary({ event: 'rerouted', value: told(value) }),
  trouble: (value) => tellPrimary({ event: 'trouble', value }),
  stopping: () => {},
}

/** Errors do not survive the way between processes with everything they say. */
function told<T extends { readonly error: { message: string; errors: readonly unknown[] } | null }>(value: T): unknown {
  const { error } = value
  return { ...value, error: error && { message: error.message, errors: error.errors } }
}

function supervise(count: number, report: StartReport): void {
  let started: WorkerMessage | undefined
  let isReady = false
  const announce = (): void => {
    if (isReady && started !== undefined) report.started(started.value as Parameters<StartReport['started']>[0])
  }
  const workers = startWorkers(count, {
    onMessage(message) {
      if (message.event === 'started' && started === undefined) {
        started = message
        announce()
      } else if (message.event === 'reloaded') report.reloaded(message.value as Parameters<StartReport['reloaded']>[0])
      else if (message.event === 'rerouted') report.rerouted(message.value as Parameters<StartReport['rerouted']>[0])
      else if (message.event === 'trouble') report.trouble(String(message.value))
    },
    onReady() {
      isReady = true
      announce()
    },
    onRefusal(status) {
      process.exitCode = status === 0 ? exitStatus.no : status
    },
    onLoss: (worker) => report.trouble(`worker ${worker} ended; another takes its place`),
  })
  stopOnSignal(() => workers.stop(), report.stopping)
}
