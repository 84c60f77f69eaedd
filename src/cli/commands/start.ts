import type { AddressInfo } from 'node:net'
import { Command, Option } from 'commander'
import type { Config } from '../../config/config.js'
import { given } from '../../core/omit-undefined.js'
import { gateOptions } from '../../gate/configured-options.js'
import type { RouteDefinition } from '../../gateway/routes/route-schema.js'
import { type Origin, parseOrigin } from '../../gateway/upstream/origin.js'
import { findDemoHints } from '../../program/demo/hints.js'
import { demoRoutes } from '../../program/demo/routes.js'
import { demoUpstream } from '../../program/demo/upstream.js'
import { openLog } from '../../program/log.js'
import { configuredRules } from '../../program/rules.js'
import { serverOf } from '../../program/server.js'
import { fileRuleStore } from '../../rules/file/file-rule-store.js'
import { wholeNumber } from '../options/option-values.js'
import { shownPath } from '../output/shown-path.js'
import { readConfig, type StartArguments } from '../start/arguments.js'
import { besideGateway } from '../start/beside.js'
import { startGateway } from '../start/gateway.js'
import { listen } from '../start/listen.js'
import { reportWith } from '../start/report.js'
import { onSignals } from '../start/stop.js'

interface StartOptions extends StartArguments {
  readonly serverPort?: number
}

const examples = `
Examples:
  $ fluxgate start
      limits http://127.0.0.1:8080 by ./rules.yaml; the API is http://127.0.0.1:8090, with a status page at /console
  $ fluxgate start --rules shop.yaml --port 9000 --server-port 9001
  $ FLUXGATE_GATEWAY_PORT=9000 fluxgate start --config fluxgate.yaml

Requests to the example are told apart by the address of their connection, X-User-Id and X-API-Key.
SIGHUP reads rules and routes again.
Exit status: 0 stopped by a signal, 1 the port is not to be had, 2 rules or configuration are mistaken.
`

export function startCommand(): Command {
  return new Command('start')
    .description(
      'Run everything in one process: the server, and the gateway with its routes or in front of an example.',
    )
    .option('--config <file>', 'settings; ./fluxgate.yaml if there is one')
    .option('--rules <file>', 'the rules, YAML or JSON; ./rules.yaml unless the settings name others')
    .addOption(new Option('--port <n>', 'of the gateway; 8080, 0 for any').argParser(wholeNumber(0, 65_535)))
    .option('--host <address>', 'of the gateway; 127.0.0.1, 0.0.0.0 for all')
    .addOption(new Option('--server-port <n>', 'of the API; 8090, 0 for any').argParser(wholeNumber(0, 65_535)))
    .option('--json', 'print one JSON document per line')
    .addHelpText('after', examples)
    .action(start)
}

async function start(options: StartOptions): Promise<void> {
  const read = await readConfig(options)
  const isExample = read.gateway.routes === undefined
  const config = isExample ? withExampleIdentities(read) : read
  const report = reportWith(openLog(config), options)
  const warnings: string[] = []
  if (config.gateway.workers !== 1 || config.server.workers !== 1)
    warnings.push('workers are for `fluxgate gateway` and `fluxgate serve`; this is one process.')
  if (config.gateway.metricsPort !== undefined)
    warnings.push('gateway.metricsPort is for `fluxgate gateway`; here the API has /metrics.')
  await startGateway({
    config,
    options,
    report,
    workers: 1,
    warnings,
    exampleRoutes: isExample ? await exampleRoutes(config, options.rules) : [],
    hints: async (ruleSets) => (isExample ? findDemoHints(ruleSets, gateOptions(config)) : null),
    beside: besideGateway(config, {
      serves: 'API',
      serverOf,
      place: { ...config.server, ...given({ port: options.serverPort }), who: 'SERVER', option: '--server-port' },
      drainTimeout: config.server.drainTimeout,
    }),
    onStart: (close, reload) => onSignals({ close, reload, onStop: report.stopping }),
  })
}

/** The rules of the example count users and API keys, which its requests name themselves. */
const withExampleIdentities = (config: Config): Config => ({
  ...config,
  ratelimit: {
    userIdHeader: 'X-User-Id',
    apiKeyHeader: 'X-API-Key',
    ...given(config.ratelimit),
  } as Config['ratelimit'],
})

/** To a service in this process, which ends with the gateway. */
async function exampleRoutes(config: Config, path: string | undefined): Promise<RouteDefinition[]> {
  const rules = configuredRules(config, path && shownPath(path)) ?? fileRuleStore(shownPath(config.rules.path))
  const ruleSets = await rules.load().finally(() => rules.close())
  const service = demoUpstream()
  await listen(service, 0, '127.0.0.1')
  service.unref()
  const { port } = service.address() as AddressInfo
  return demoRoutes(ruleSets, parseOrigin(`http://127.0.0.1:${port}`) as Origin)
}
