import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { relative, resolve } from 'node:path'
import { Command, Option } from 'commander'
import { gateOptions, loadConfig } from '../app/config.js'
import { unusedVariables } from '../app/config-absent.js'
import { createFluxGate } from '../app/create-flux-gate.js'
import { demoEndpoint } from '../app/demo-endpoint.js'
import { findDemoHints } from '../app/demo-hints.js'
import { given } from '../core/given.js'
import type { RuleSet } from '../core/rule.js'
import { exitStatus } from './exit-status.js'
import { wholeNumber } from './option-values.js'
import { paintFor } from './output.js'
import { jsonReport, textReport } from './start-report.js'
import { stopOnSignal } from './start-stop.js'

interface StartOptions {
  readonly config?: string
  readonly rules?: string
  readonly port?: number
  readonly host?: string
  readonly json?: true
}

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
    .description('Run everything in one process: an HTTP endpoint that is limited by rules, to try them on.')
    .option('--config <file>', 'settings; ./fluxgate.yaml if there is one')
    .option('--rules <file>', 'the rules, YAML or JSON; ./rules.yaml unless the settings name others')
    .addOption(new Option('--port <n>', 'where to listen; 8080, 0 for any').argParser(wholeNumber(0, 65_535)))
    .option('--host <address>', 'on which address; 127.0.0.1, 0.0.0.0 for all')
    .option('--json', 'print one JSON document per line')
    .addHelpText('after', examples)
    .action(start)
}

async function start(options: StartOptions): Promise<void> {
  const config = await loadConfig({ path: options.config, env: process.env, cwd: process.cwd() })
  const rules = shownPath(options.rules ?? config.rules.path)
  const gate = await createFluxGate({ ...gateOptions(config), rules })
  const server = demoEndpoint(gate)
  const { host, port } = { ...config.gateway, ...given({ host: options.host, port: options.port }) }
  const problem = await listen(server, port, host)
  if (problem !== undefined) {
    process.stderr.write(`${paintFor(process.stderr)('red', 'error:')} ${problem}\n`)
    process.exitCode = exitStatus.no
    return gate.close()
  }
  const report = options.json ? jsonReport : textReport
  gate.on('reload', ({ changed, error }) => {
    report.reloaded({ rules, ruleCount: countRules(gate.ruleSets), changed, error })
  })
  stopOnSignal(server, gate, report.stopping)
  report.started({
    url: urlOf(server.address() as AddressInfo),
    rules,
    ruleCount: countRules(gate.ruleSets),
    warnings: unusedVariables(process.env),
    hints: await findDemoHints(gate.ruleSets, gateOptions(config)),
  })
}

/** Resolves with what is wrong, if it cannot listen. */
function listen(server: Server, port: number, host: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    server.on('error', (error: NodeJS.ErrnoException) => resolve(listenProblem(error, port, host)))
    server.listen(port, host, () => resolve(undefined))
  })
}

function listenProblem(error: NodeJS.ErrnoException, port: number, host: string): string {
  const choose = (other: number): string => `--port ${other}, or FLUXGATE_GATEWAY_PORT=${other}`
  switch (error.code) {
    case 'EADDRINUSE':
      return `Port ${port} of ${host} is taken. Stop the program that has it, or choose another: ${choose(port < 65_535 ? port + 1 : 8080)}.`
    case 'EACCES':
      return `Port ${port} of ${host} needs rights that this process does not have. Choose one above 1023: ${choose(8080)}.`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is no address of this machine. Choose another: --host 127.0.0.1.`
    default:
      return `Port ${port} of ${host} cannot be listened on (${error.code ?? error.message}).`
  }
}

/** Where to reach it from this machine: every address includes this one. */
function urlOf({ address, family, port }: AddressInfo): string {
  const host = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address
  return `http://${family === 'IPv6' ? `[${host}]` : host}:${port}`
}

const countRules = (ruleSets: readonly RuleSet[]): number => ruleSets.reduce((sum, { rules }) => sum + rules.length, 0)

function shownPath(path: string): string {
  const fromHere = relative(process.cwd(), resolve(path))
  return fromHere === '' || fromHere.startsWith('..') ? resolve(path) : fromHere
}
