import { Command } from 'commander'
import type { Config } from '../../config/config.js'
import { openLog } from '../../program/log.js'
import { metricsServerOf } from '../../program/server.js'
import { commandName } from '../command-name.js'
import { UsageError } from '../failure.js'
import { readConfig } from '../options/read-config.js'
import { configOption, jsonLinesOption, portOption, rulesOption, workersOption } from '../options/shared-options.js'
import { type CompanionServer, companionServer } from '../start/companion-server.js'
import { startGateway } from '../start/gateway.js'
import type { StartOptions } from '../start/options.js'
import { reportWith } from '../start/report.js'
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
    .addOption(configOption('the routes', './fluxgate.yaml'))
    .addOption(rulesOption())
    .addOption(portOption('--port', 'port to listen on', 8080))
    .option('--host <address>', 'address to listen on; 0.0.0.0 for all interfaces (default: 127.0.0.1)')
    .addOption(workersOption())
    .addOption(jsonLinesOption())
    .addHelpText('after', examples)
    .action(gateway)
}

/** A server for metrics and health, if `gateway.metricsPort` is set. */
function metricsServer(config: Config): CompanionServer | undefined {
  const { metricsHost: host, metricsPort: port, drainTimeout } = config.gateway
  if (port === undefined) return undefined
  const address = { host, port, listener: 'GATEWAY_METRICS', option: 'gateway.metricsPort' } as const
  return companionServer(config, { serves: 'METRICS', serverOf: metricsServerOf, address, drainTimeout })
}

async function gateway(options: GatewayOptions): Promise<void> {
  const config = await readConfig(options)
  if (config.gateway.routes === undefined || config.gateway.routes.length === 0)
    throw new UsageError(
      `No routes are configured. Add them to fluxgate.yaml under gateway.routes; \`${commandName()} init\` creates the file. Or run \`${commandName()} start\` for a built-in example.`,
    )
  const startReport = reportWith(openLog(config), options)
  await runInWorkers(options.workers ?? config.gateway.workers, startReport, ({ report, workers, onStart }) =>
    startGateway({
      config,
      options,
      report,
      workers,
      exampleRoutes: [],
      hints: async () => null,
      companion: metricsServer(config),
      onStart,
    }),
  )
}
