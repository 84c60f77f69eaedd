import { Command, Option } from 'commander'
import { openLog } from '../../program/log.js'
import { stopWhenTold } from '../../program/workers/workers.js'
import { wholeNumber } from '../options/option-values.js'
import { readConfig, type StartArguments } from '../start/arguments.js'
import { reportWith } from '../start/report.js'
import { startServer } from '../start/server.js'
import { onSignals } from '../start/stop.js'
import { runInWorkers } from '../start/workers.js'

interface ServeOptions extends StartArguments {
  readonly workers?: number
}

const examples = `
Examples:
  $ fluxgate serve
      decisions over HTTP on http://127.0.0.1:8090, by ./rules.yaml
  $ FLUXGATE_ADMIN_TOKEN=… fluxgate serve --host 0.0.0.0
      for other machines: every request needs the token
  $ FLUXGATE_REDIS_URI=redis://127.0.0.1:6379 fluxgate serve --workers 4
      four processes that count together

/openapi.json lists what can be asked. SIGHUP reads the rules again.
Exit status: 0 stopped by a signal, 1 the port is not to be had, 2 rules or configuration are mistaken.
`

export function serveCommand(): Command {
  return new Command('serve')
    .description('Run the server: decisions, rules and statistics over HTTP, for any language.')
    .option('--config <file>', 'settings; ./fluxgate.yaml if there is one')
    .option('--rules <file>', 'the rules, YAML or JSON; ./rules.yaml unless the settings name others')
    .addOption(new Option('--port <n>', 'where to listen; 8090, 0 for any').argParser(wholeNumber(0, 65_535)))
    .option('--host <address>', 'on which address; 127.0.0.1, others need an admin token')
    .addOption(new Option('--workers <n>', 'how many processes share the work; 1').argParser(wholeNumber(1, 256)))
    .option('--json', 'print one JSON document per line')
    .addHelpText('after', examples)
    .action(serve)
}

async function serve(options: ServeOptions): Promise<void> {
  const config = await readConfig(options)
  const spoken = reportWith(openLog(config), options)
  await runInWorkers(options.workers ?? config.server.workers, spoken, ({ report, workers, isWorker, onStarted }) =>
    startServer({
      config,
      options,
      report,
      workers,
      onStart(close, reload) {
        onStarted()
        if (isWorker) stopWhenTold(close, reload)
        else onSignals({ close, reload, onStop: report.stopping })
      },
    }),
  )
}
