import { Command, Option } from 'commander'
import type { Decision } from '../../core/decision.js'
import { omitUndefined } from '../../core/omit-undefined.js'
import { exitStatus } from '../exit-status.js'
import { withLocalGate } from '../local-gate.js'
import { bodyOf, type DecisionOptions, withDecisionOptions } from '../options/decision-options.js'
import { wholeNumber } from '../options/option-values.js'
import { contextOf } from '../options/request-options.js'
import { printJson } from '../output/output.js'
import { serverClient } from '../server-client.js'

interface CheckCommandOptions extends DecisionOptions {
  readonly peek?: true
  readonly hold?: true
  readonly repeat?: number
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
  const command = new Command('check').description('Decide one request and print the Decision as JSON.')
  return withDecisionOptions(command, 'FLUXGATE_CHECK_TOKEN or FLUXGATE_ADMIN_TOKEN')
    .option('--peek', 'decide without charging')
    .option('--hold', 'keep the slots of CONCURRENCY rules until maxHold (default: release them before exiting)')
    .addOption(new Option('--repeat <n>', 'decide n times and print the last decision').argParser(wholeNumber(1, 1e6)))
    .option('--json', 'with --repeat, print all decisions as a list')
    .addHelpText('after', examples)
    .action(check)
}

async function check(options: CheckCommandOptions): Promise<void> {
  const decisions = await (options.server === undefined ? decideLocally(options) : askServer(options, options.server))
  const last = decisions.at(-1) as Decision
  process.exitCode = last.allowed ? exitStatus.ok : exitStatus.negative
  printJson(options.json && options.repeat !== undefined ? decisions : last)
}

function decideLocally(options: CheckCommandOptions): Promise<Decision[]> {
  const { permits, cost: costs, peek } = options
  return withLocalGate(options, (gate, ruleSetId) => {
    const context = contextOf(options)
    return decideAll(
      options,
      () => gate.check(context, { ruleSetId, permits, costs, peek, waitForSlot: false }),
      (holdId) => gate.release(holdId),
    )
  })
}

async function askServer(options: CheckCommandOptions, url: string): Promise<Decision[]> {
  const client = serverClient(url, ['FLUXGATE_CHECK_TOKEN', 'FLUXGATE_ADMIN_TOKEN'])
  const body = { ...bodyOf(options), ...omitUndefined({ peek: options.peek }) }
  return decideAll(
    options,
    async () => (await client.request('POST', '/api/ratelimit/check', { body })).body as Decision,
    (holdId) => client.request('POST', '/api/ratelimit/release', { body: { holdId } }),
  )
}

/**
 * Decides as often as the options say. The requests are in progress at the same time, so their slots are released at the end:
 * the command does no work that would occupy them any longer.
 */
async function decideAll(
  { repeat = 1, hold }: CheckCommandOptions,
  decide: () => Promise<Decision>,
  release: (holdId: string) => Promise<unknown>,
): Promise<Decision[]> {
  const decisions: Decision[] = []
  try {
    for (let i = 0; i < repeat; i++) decisions.push(await decide())
    return decisions
  } finally {
    if (!hold) for (const { holdId } of decisions) if (holdId !== undefined) await release(holdId)
  }
}
