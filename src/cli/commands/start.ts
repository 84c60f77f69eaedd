import type { AddressInfo } from 'node:net'
import { Command } from 'commander'
import type { Config } from '../../config/config.js'
import { omitUndefined } from '../../core/omit-undefined.js'
import { gateOptions } from '../../gate/configured-options.js'
import type { RouteDefinition } from '../../gateway/routes/route-schema.js'
import { type Origin, parseOrigin } from '../../gateway/upstream/origin.js'
import { findDemoExamples } from '../../program/demo/examples.js'
import { copyDemoRules, hasNoFiles } from '../../program/demo/rules.js'
import { demoRoutes, demoUpstream, withDemoIdentities } from '../../program/demo/upstream.js'
import { openLog } from '../../program/log.js'
import { configuredRules } from '../../program/rules.js'
import { serverOf } from '../../program/server.js'
import { fileRuleStore } from '../../rules/file/file-rule-store.js'
import { commandName } from '../command-name.js'
import { readConfig } from '../options/read-config.js'
import { configOption, grpcPortOption, jsonLinesOption, portOption, rulesOption } from '../options/shared-options.js'
import { displayPath } from '../output/output.js'
import { companionServer } from '../start/companion-server.js'
import { startGateway } from '../start/gateway.js'
import { listen } from '../start/listen.js'
import type { StartOptions } from '../start/options.js'
import { reportWith } from '../start/report.js'
import { onSignals } from '../start/signals.js'

interface StartCommandOptions extends StartOptions {
  readonly serverPort?: number
}

const examples = `
Examples:
  $ fluxgate start
      run the gateway on http://127.0.0.1:8080 with the rules of ./rules.yaml, and the API on http://127.0.0.1:8090
  $ fluxgate start --rules shop.yaml --port 9000 --server-port 9001
  $ FLUXGATE_GATEWAY_PORT=9000 fluxgate start --config fluxgate.yaml

Without fluxgate.yaml and rules.yaml, it starts with demo rules; \`fluxgate init\` creates both files.
Without gateway.routes, the gateway proxies to a built-in example service that identifies clients by their address,
X-User-Id and X-API-Key. SIGHUP reloads rules and routes.
Exit status: 0 stopped by a signal, 1 port unavailable, 2 invalid rules or configuration.
`

export function startCommand(): Command {
  return new Command('start')
    .description('Run the server and the gateway in one process.')
    .addOption(configOption())
    .addOption(rulesOption())
    .addOption(portOption('--port', 'gateway port', 8080))
    .option('--host <address>', 'gateway address; 0.0.0.0 for all interfaces (default: 127.0.0.1)')
    .addOption(portOption('--server-port', 'API port', 8090))
    .addOption(grpcPortOption())
    .addOption(jsonLinesOption())
    .addHelpText('after', examples)
    .action(start)
}

async function start(given: StartCommandOptions): Promise<void> {
  const read = await readConfig(given)
  const isDemo = given.rules === undefined && hasNoFiles(read)
  const options = isDemo ? { ...given, rules: await copyDemoRules() } : given
  const isExample = read.gateway.routes === undefined
  const config = isExample ? withDemoIdentities(read) : read
  const report = reportWith(openLog(config), options)
  const warnings: string[] = []
  if (isDemo)
    warnings.push(
      `this directory has neither fluxgate.yaml nor rules.yaml: demo rules are in use, and edits of them are lost at exit. Run \`${commandName()} init\` to create both files.`,
    )
  if (config.gateway.workers !== 1 || config.server.workers !== 1)
    warnings.push(
      '`fluxgate start` ignores workers: use `fluxgate gateway` or `fluxgate serve` to run several processes.',
    )
  if (config.gateway.metricsPort !== undefined)
    warnings.push('`fluxgate start` ignores gateway.metricsPort: its API serves /metrics.')
  await startGateway({
    config,
    options,
    report,
    workers: 1,
    warnings,
    exampleRoutes: isExample ? await exampleRoutes(config, options.rules) : [],
    hints: async (ruleSets) => (isExample ? findDemoExamples(ruleSets, gateOptions(config)) : null),
    companion: companionServer(config, {
      serves: 'API',
      serverOf,
      address: {
        ...config.server,
        ...omitUndefined({ port: options.serverPort }),
        listener: 'SERVER',
        option: '--server-port',
      },
      drainTimeout: config.server.drainTimeout,
      grpc: options,
    }),
    onStart: (close, reload) => onSignals({ close, reload, onStop: report.stopping }),
  })
}

/** Routes to an example service in this process. The service does not keep the process alive. */
async function exampleRoutes(config: Config, path: string | undefined): Promise<RouteDefinition[]> {
  const rules = configuredRules(config, path && displayPath(path)) ?? fileRuleStore(displayPath(config.rules.path))
  const ruleSets = await rules.load().finally(() => rules.close())
  const service = demoUpstream()
  await listen(service, 0, '127.0.0.1')
  service.unref()
  const { port } = service.address() as AddressInfo
  return demoRoutes(ruleSets, parseOrigin(`http://127.0.0.1:${port}`) as Origin)
}
