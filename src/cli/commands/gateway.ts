import { Command, Option } from 'commander'
import type { Config } from '../../config/config.js'
import { openLog } from '../../program/log.js'
import { metricsServerOf } from '../../program/server.js'
import { followPrimary } from '../../program/workers/workers.js'
import { UsageError } from '../failure.js'
import { wholeNumber } from '../options/option-values.js'
import { readConfig, type StartOptions } from '../start/arguments.js'
import { companionServer } from '../start/companion-server.js'
import { type CompanionServer, startGateway } from '../start/gateway.js'
import { reportWith } from '../start/report.js'
import { onSignals } from '../start/signals.js'
import { runInWorkers } from '../start/workers.js'

interface GatewayOptions extends StartOptions {
  readonly workers?: number
}

const examples = `
Examples:
  $ fluxgate gateway
      serve the routes of ./fluxgate.yaml on http://127.0.0.1:8080
  $ fluxgate gateway --config conf/gateway.yaml --host 0.0.0.0 --port 80
  $ FLUXGATE_REDIS_URI=redis://127.0.0.1:6379 fluxgate gateway --workers 4
      run four processes that share their limits through Redis
  $ FLUXGATE_GATEWAY_METRICS_PORT=9090 fluxgate gateway
      also serve http://127.0.0.1:9090/metrics for Prometheus, and /health/ready

Routes are listed under gateway.routes: { id, uri, predicates: [Path=/api/**], filters: [RateLimiter=api] }.
SIGHUP reloads rules and routes.
Exit status: 0 stopped by a signal, 1 port unavailable, 2 invalid rules or configuration.
`

export function gatewayCommand(): Command {
  return new Command('gateway')
    .description('Run the gateway: a rate limiting reverse proxy, configured in fluxgate.yaml.')
    .option('--config <file>', 'configuration file with the routes (default: ./fluxgate.yaml)')
    .option('--rules <file>', 'rules file, YAML or JSON (default: rules of the configuration, or ./rules.yaml)')
    .addOption(
      new Option('--port <n>', 'port to listen on; 0 picks a free one (default: 8080)').argParser(
        wholeNumber(0, 65_535),
      ),
    )
    .option('--host <address>', 'address to listen on; 0.0.0.0 for all interfaces (default: 127.0.0.1)')
    .addOption(new Option('--workers <n>', 'number of worker processes (default: 1)').argParser(wholeNumber(1, 256)))
    .option('--json', 'print one JSON document per line')
    .addHelpText('after', examples)
    .action(gateway)
}

/** A server for metrics and health, if `gateway.metricsPort` is set. */
function metricsBeside(config: Config): CompanionServer | undefined {
  const { metricsHost: host, metricsPort: port, drainTimeout } = config.gateway
  if (port === undefined) return undefined
  const place = { host, port, who: 'GATEWAY_METRICS', option: 'gateway.metricsPort' } as const
  return companionServer(config, { serves: 'METRICS', serverOf: metricsServerOf, place, drainTimeout })
}

async function gateway(options: GatewayOptions): Promise<void> {
  const config = await readConfig(options)
  if (config.gateway.routes === undefined || config.gateway.routes.length === 0)
    throw new UsageError(
      'No routes are configured. Add them to fluxgate.yaml under gateway.routes, or run `fluxgate start` for a built-in example.',
    )
  const startReport = reportWith(openLog(config), options)
  await runInWorkers(
    options.workers ?? config.gateway.workers,
    startReport,
    ({ report, workers, isWorker, onStarted }) =>
      startGateway({
        config,
        options,
        report,
        workers,
        exampleRoutes: [],
        hints: async () => null,
        companion: metricsBeside(config),
        onStart(close, reload) {
          onStarted()
          if (isWorker) followPrimary(close, reload)
          else onSignals({ close, reload, onStop: report.stopping })
        },
      }),
  )
}
