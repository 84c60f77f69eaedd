import { Command } from 'commander'
import { hasNoFiles } from '../../program/demo/rules.js'
import { openLog } from '../../program/log.js'
import { commandName } from '../command-name.js'
import { UsageError } from '../failure.js'
import { readConfig } from '../options/read-config.js'
import {
  configOption,
  grpcPortOption,
  jsonLinesOption,
  portOption,
  rulesOption,
  workersOption,
} from '../options/shared-options.js'
import type { StartOptions } from '../start/options.js'
import { reportWith } from '../start/report.js'
import { startServer } from '../start/server.js'
import { runInWorkers } from '../start/workers.js'

interface ServeOptions extends StartOptions {
  readonly workers?: number
}

const examples = `
Examples:
  $ fluxgate serve
      serve decisions on http://127.0.0.1:8090, with the rules of ./rules.yaml
  $ FLUXGATE_ADMIN_TOKEN=… fluxgate serve --host 0.0.0.0
      accept requests from other machines; every request needs the token
  $ FLUXGATE_REDIS_URI=redis://127.0.0.1:6379 fluxgate serve --workers 4
      run four processes that share their limits through Redis
  $ fluxgate serve --grpc-port 8081
      also serve Envoy's rate limit filter

The API is described at /openapi.json. SIGHUP reloads the rules.
Exit status: 0 stopped by a signal, 1 port unavailable, 2 invalid rules or configuration.
`

export function serveCommand(): Command {
  return new Command('serve')
    .description('Run the server: decisions, rules and statistics over HTTP.')
    .addOption(configOption())
    .addOption(rulesOption())
    .addOption(portOption('--port', 'port to listen on', 8090))
    .option('--host <address>', 'address to listen on; non-loopback needs an admin token (default: 127.0.0.1)')
    .addOption(grpcPortOption())
    .addOption(workersOption())
    .addOption(jsonLinesOption())
    .addHelpText('after', examples)
    .action(serve)
}

async function serve(options: ServeOptions): Promise<void> {
  const config = await readConfig(options)
  if (options.rules === undefined && hasNoFiles(config))
    throw new UsageError(
      `There is no rules file rules.yaml, and no fluxgate.yaml. Run \`${commandName()} init\` to create both, or \`${commandName()} start\` to try demo rules.`,
    )
  const startReport = reportWith(openLog(config), options)
  await runInWorkers(options.workers ?? config.server.workers, startReport, ({ report, workers, onStart }) =>
    startServer({ config, options, report, workers, onStart }),
  )
}
