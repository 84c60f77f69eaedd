import type { AddressInfo } from 'node:net'
import { Command, Option } from 'commander'
import { gateOptions } from '../app/config.js'
import { findDemoHints } from '../app/demo-hints.js'
import { demoRoutes } from '../app/demo-routes.js'
import { demoUpstream } from '../app/demo-upstream.js'
import type { RouteDefinition } from '../app/gateway-schema.js'
import { type Origin, parseOrigin } from '../gateway/upstream/origin.js'
import { fileRules } from '../rules/file-provider.js'
import { wholeNumber } from './option-values.js'
import { type GatewayArguments, readConfig, shownPath, startGateway } from './start-gateway.js'
import { listen } from './start-listen.js'
import { jsonReport, textReport } from './start-report.js'
import { stopOnSignal } from './start-stop.js'

const examples = `
Examples:
  $ fluxgate start
      limits http://127.0.0.1:8080 by ./rules.yaml
  $ fluxgate start --rules shop.yaml --port 9000
  $ FLUXGATE_GATEWAY_PORT=9000 fluxgate start --config fluxgate.yaml

Requests are told apart by the address of their connection, X-User-Id and X-API-Key.
Exit status: 0 stopped by a signal, 1 the port is not to be had, 2 rules or configuration are mistaken.
`

export function startCommand(): Command {
  return new Command('start')
    .description(
      'Run everything in one process: the gateway with its routes, or in front of an example to try rules on.',
    )
    .option('--config <file>', 'settings; ./fluxgate.yaml if there is one')
    .option('--rules <file>', 'the rules, YAML or JSON; ./rules.yaml unless the settings name others')
    .addOption(new Option('--port <n>', 'where to listen; 8080, 0 for any').argParser(wholeNumber(0, 65_535)))
    .option('--host <address>', 'on which address; 127.0.0.1, 0.0.0.0 for all')
    .option('--json', 'print one JSON document per line')
    .addHelpText('after', examples)
    .action(start)
}

async function start(options: GatewayArguments): Promise<void> {
  const config = await readConfig(options)
  const report = options.json ? jsonReport : textReport
  const isExample = config.gateway.routes === undefined
  const warnings =
    config.gateway.workers === 1 ? [] : ['gateway.workers is for `fluxgate gateway`; this is one process.']
  await startGateway({
    config,
    options,
    report,
    workers: 1,
    warnings,
    exampleRoutes: isExample ? await exampleRoutes(options.rules ?? config.rules.path) : [],
    hints: async (ruleSets) => (isExample ? findDemoHints(ruleSets, gateOptions(config)) : null),
    onStart: (close) => stopOnSignal(close, report.stopping),
  })
}

/** To a service in this process, which ends with the gateway. */
async function exampleRoutes(rules: string): Promise<RouteDefinition[]> {
  const ruleSets = await fileRules(shownPath(rules)).load()
  const service = demoUpstream()
  await listen(service, 0, '127.0.0.1')
  service.unref()
  const { port } = service.address() as AddressInfo
  return demoRoutes(ruleSets, parseOrigin(`http://127.0.0.1:${port}`) as Origin)
}
