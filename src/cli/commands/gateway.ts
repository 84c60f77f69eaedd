import { Command, Option } from 'commander'
import type { Config } from '../../config/config.js'
import { openLog } from '../../program/log.js'
import { metricsServerOf } from '../../program/server.js'
import { stopWhenTold } from '../../program/workers/workers.js'
import { UsageError } from '../failure.js'
import { wholeNumber } from '../options/option-values.js'
import { readConfig, type StartArguments } from '../start/arguments.js'
import { besideGateway } from '../start/beside.js'
import { type Beside, startGateway } from '../start/gateway.js'
import { reportWith } from '../start/report.js'
import { onSignals } from '../start/stop.js'
import { runInWorkers } from '../start/workers.js'

interface GatewayOptions extends StartArguments {
  readonly workers?: number
}

const examples = `
Examples:
  $ fluxgate gateway
      the routes of ./fluxgate.yaml on http://127.0.0.1:8080
  $ fluxgate gateway --config conf/gateway.yaml --host 0.0.0.0 --port 80
  $ FLUXGATE_REDIS_URI=redis://127.0.0.1:6379 fluxgate gateway --workers 4
      four processes that count together
  $ FLUXGATE_GATEWAY_METRICS_PORT=9090 fluxgate gateway
      with http://127.0.0.1:9090/metrics for Prometheus, and /health/ready

SIGHUP reads rules and routes again. A route is { id, uri, predicates: [Path=/api/**], filters: [RateLimiter=api] } under gateway.routes.
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

/** Where the settings name a port for them. */
function metricsBeside(config: Config): Beside | undefined {
  const { metricsHost: host, metricsPort: port, drainTimeout } = config.gateway
  if (port === undefined) return undefined
  const place = { host, port, who: 'GATEWAY_METRICS', option: 'gateway.metricsPort' } as const
  return besideGateway(config, { serves: 'METRICS', serverOf: metricsServerOf, place, drainTimeout })
}

async function gateway(options: GatewayOptions): Promise<void> {
  const config = await readConfig(options)
  if (config.gateway.routes === undefined || config.gateway.routes.length === 0)
    throw new UsageError(
      'There are no routes. Name them in fluxgate.yaml, under gateway.routes; `fluxgate start` has an example of its own.',
    )
  const spoken = reportWith(openLog(config), options)
  await runInWorkers(options.workers ?? config.gateway.workers, spoken, ({ report, workers, isWorker, onStarted }) =>
    startGateway({
      config,
      options,
      report,
      workers,
      exampleRoutes: [],
      hints: async () => null,
      beside: metricsBeside(config),
      onStart(close, reload) {
        onStarted()
        if (isWorker) stopWhenTold(close, reload)
        else onSignals({ close, reload, onStop: report.stopping })
      },
    }),
  )
}
