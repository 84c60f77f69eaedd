import { Command, Option } from 'commander'
import { openLog } from '../../program/log.js'
import { followPrimary } from '../../program/workers/workers.js'
import { wholeNumber } from '../options/option-values.js'
import { readConfig, type StartOptions } from '../start/arguments.js'
import { reportWith } from '../start/report.js'
import { startServer } from '../start/server.js'
import { onSignals } from '../start/signals.js'
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

The API is described at /openapi.json. SIGHUP reloads the rules.
Exit status: 0 stopped by a signal, 1 port unavailable, 2 invalid rules or configuration.
`

export function serveCommand(): Command {
  return new Command('serve')
    .description('Run the server: decisions, rules and statistics over HTTP.')
    .option('--config <file>', 'configuration file (default: ./fluxgate.yaml, if it exists)')
    .option('--rules <file>', 'rules file, YAML or JSON (default: rules of the configuration, or ./rules.yaml)')
    .addOption(
      new Option('--port <n>', 'port to listen on; 0 picks a free one (default: 8090)').argParser(
        wholeNumber(0, 65_535),
      ),
    )
    .option('--host <address>', 'address to listen on; non-loopback needs an admin token (default: 127.0.0.1)')
    .addOption(new Option('--workers <n>', 'number of worker processes (default: 1)').argParser(wholeNumber(1, 256)))
    .option('--json', 'print one JSON document per line')
    .addHelpText('after', examples)
    .action(serve)
}

async function serve(options: ServeOptions): Promise<void> {
  const config = await readConfig(options)
  const startReport = reportWith(openLog(config), options)
  await runInWorkers(
    options.workers ?? config.server.workers,
    startReport,
    ({ report, workers, isWorker, onStarted }) =>
      startServer({
        config,
        options,
        report,
        workers,
        onStart(close, reload) {
          onStarted()
          if (isWorker) followPrimary(close, reload)
          else onSignals({ close, reload, onStop: report.stopping })
        },
      }),
  )
}
