import { Command, InvalidArgumentError, Option } from 'commander'
import type { Decision } from '../../core/decision.js'
import { omitUndefined } from '../../core/omit-undefined.js'
import type { Costs } from '../../core/rule.js'
import { exitStatus } from '../exit-status.js'
import { withLocalGate } from '../local-gate.js'
import { wholeNumber } from '../options/option-values.js'
import { contextOf, type RequestOptions, withRequestOptions } from '../options/request-options.js'
import { configOption, ruleSetOption } from '../options/shared-options.js'
import { printJson } from '../output/output.js'
import { serverClient } from '../server-client.js'

interface CheckCommandOptions extends RequestOptions {
  readonly rules?: string
  readonly config?: string
  readonly server?: string
  readonly ruleSet?: string
  readonly permits?: number
  readonly cost?: Costs
  readonly peek?: true
  readonly repeat?: number
  readonly json?: true
}

const examples = `
Examples:
  $ fluxgate check --ip 203.0.113.7 --path /api/users
      decide one request with full buckets
  $ fluxgate check --ip 203.0.113.7 --method POST --path /login --repeat 6
      print the decision on the last of six simultaneous requests
  $ fluxgate check --rules rules.yaml --user ann --attribute tier=premium --header X-App:ios
  $ fluxgate check --path /login --repeat 20 --json | jq '[.[] | .allowed]'
  $ fluxgate check --server http://127.0.0.1:8090 --user ann --path /login --peek
      ask a running server, without charging

Exit status: 0 allowed, 1 rejected, 2 no decision could be made.
`

export function checkCommand(): Command {
  const command = new Command('check')
    .description('Decide one request and print the Decision as JSON.')
    .option('--rules <file>', 'rules file, YAML or JSON, with in-memory buckets')
    .addOption(
      configOption('the rules and the store', './fluxgate.yaml, or ./rules.yaml without one').conflicts('rules'),
    )
    .addOption(
      new Option(
        '--server <url>',
        'ask a FluxGate server; token from FLUXGATE_CHECK_TOKEN or FLUXGATE_ADMIN_TOKEN',
      ).conflicts(['rules', 'config']),
    )
    .addOption(ruleSetOption())
  return withRequestOptions(command)
    .addOption(new Option('--permits <n>', 'permits to request (default: 1)').argParser(wholeNumber(0, 1e9)))
    .addOption(
      new Option('--cost <name=amount>', 'a further cost, such as tokens=1200; may be repeated').argParser(addCost),
    )
    .option('--peek', 'decide without charging')
    .addOption(new Option('--repeat <n>', 'decide n times and print the last decision').argParser(wholeNumber(1, 1e6)))
    .option('--json', 'with --repeat, print all decisions as a list')
    .addHelpText('after', examples)
    .action(check)
}

/** Adds an amount such as `tokens=1200` to the costs before it. */
function addCost(text: string, before: Costs = {}): Costs {
  const [, name = '', amount = ''] = /^([A-Za-z0-9._:-]{1,128})=(\d{1,10})$/.exec(text) ?? []
  if (name === '') throw new InvalidArgumentError('It must be a name and an integer, such as tokens=1200.')
  return { ...before, [name]: Number(amount) }
}

async function check(options: CheckCommandOptions): Promise<void> {
  const decisions = await (options.server === undefined ? decideLocally(options) : askServer(options, options.server))
  const last = decisions.at(-1) as Decision
  process.exitCode = last.allowed ? exitStatus.ok : exitStatus.negative
  printJson(options.json && options.repeat !== undefined ? decisions : last)
}

function decideLocally(options: CheckCommandOptions): Promise<Decision[]> {
  const { permits, cost: costs, peek } = options
  return withLocalGate(options, async (gate, ruleSetId) => {
    const decisions: Decision[] = []
    for (let i = 0; i < (options.repeat ?? 1); i++)
      decisions.push(await gate.check(contextOf(options), { ruleSetId, permits, costs, peek }))
    return decisions
  })
}

async function askServer(options: CheckCommandOptions, url: string): Promise<Decision[]> {
  const client = serverClient(url, ['FLUXGATE_CHECK_TOKEN', 'FLUXGATE_ADMIN_TOKEN'])
  const { ruleSet: ruleSetId, permits, cost: costs, peek } = options
  const body = { ...contextOf(options), ...omitUndefined({ ruleSetId, permits, costs, peek }) }
  const decisions: Decision[] = []
  for (let i = 0; i < (options.repeat ?? 1); i++)
    decisions.push((await client.request('POST', '/api/ratelimit/check', { body })).body as Decision)
  return decisions
}
