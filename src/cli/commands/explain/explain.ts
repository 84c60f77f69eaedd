import { Command, Option } from 'commander'
import type { Explanation } from '../../../core/explain/explanation.js'
import { omitUndefined } from '../../../core/omit-undefined.js'
import type { Costs } from '../../../core/rule.js'
import type { PastRejections } from '../../../server/routes/explain/past-rejections.js'
import { exitStatus } from '../../exit-status.js'
import { UsageError } from '../../failure.js'
import { withLocalGate } from '../../local-gate.js'
import { costs, wholeNumber } from '../../options/option-values.js'
import { contextOf, type RequestOptions, withRequestOptions } from '../../options/request-options.js'
import { configOption, ruleSetOption } from '../../options/shared-options.js'
import { paintFor, print, printJson } from '../../output/output.js'
import { serverClient } from '../../server-client.js'
import { rejectionLines } from './past.js'
import { explanationLines } from './report.js'

interface ExplainCommandOptions extends RequestOptions {
  readonly rules?: string
  readonly config?: string
  readonly server?: string
  readonly ruleSet?: string
  readonly permits?: number
  readonly cost?: Costs
  readonly limit?: number
  readonly ratelimit?: string
  readonly traceId?: string
  readonly json?: true
}

const examples = `
Examples:
  $ fluxgate explain --ip 203.0.113.7 --method POST --path /login
      show which rules apply to a request, and which condition excludes the others
  $ fluxgate explain --server http://127.0.0.1:8090 --user ann --path /api/orders
      the same with the rules and the buckets of a running server
  $ fluxgate explain --server http://127.0.0.1:8090 --ratelimit '"reads.per-minute";r=0;t=12' --trace-id 4bf92f35
      find a past rejection by the RateLimit header of its response and its trace ID
  $ fluxgate explain --rules rules.yaml --path /login --json | jq '.rules[] | select(.status == "MATCHED")'

Charges nothing. Exit status: 0 allowed, 1 rejected, 2 no decision could be made.
`

export function explainCommand(): Command {
  const command = new Command('explain')
    .description('Explain the decision about a request: rules, conditions, keys and buckets.')
    .option('--rules <file>', 'rules file, YAML or JSON, with in-memory buckets')
    .addOption(
      configOption('the rules and the store', './fluxgate.yaml, or ./rules.yaml without one').conflicts('rules'),
    )
    .addOption(
      new Option('--server <url>', 'ask a FluxGate server; token from FLUXGATE_ADMIN_TOKEN').conflicts([
        'rules',
        'config',
      ]),
    )
    .addOption(ruleSetOption())
  return withRequestOptions(command)
    .addOption(new Option('--permits <n>', 'permits to request (default: 1)').argParser(wholeNumber(0, 1e9)))
    .addOption(new Option('--cost <name=amount>', 'a further cost, such as tokens=1200; repeatable').argParser(costs))
    .addOption(
      new Option('--limit <n>', 'number of rules to list that do not apply (default: 1000)').argParser(
        wholeNumber(0, 100_000),
      ),
    )
    .option('--ratelimit <header>', 'find past rejections by the RateLimit header of the response (with --server)')
    .option('--trace-id <id>', 'find past rejections by the trace ID of the request (with --server)')
    .option('--json', 'print the explanation as JSON')
    .addHelpText('after', examples)
    .action(explain)
}

async function explain(options: ExplainCommandOptions): Promise<void> {
  if (options.ratelimit !== undefined || options.traceId !== undefined) return explainPast(options)
  const explanation = await (options.server === undefined
    ? explainLocally(options)
    : askServer(options, options.server))
  process.exitCode = explanation.decision.allowed ? exitStatus.ok : exitStatus.negative
  if (options.json) printJson(explanation)
  else for (const line of explanationLines(explanation, Date.now(), paintFor(process.stdout))) print(line)
}

/** Only a server knows past rejections. The exit status is 1 if it finds no match. */
async function explainPast(options: ExplainCommandOptions): Promise<void> {
  const { server, ratelimit, traceId, ruleSet: ruleSetId } = options
  if (server === undefined)
    throw new UsageError('--ratelimit and --trace-id require --server: the server has the recent rejections.')
  const client = serverClient(server, ['FLUXGATE_ADMIN_TOKEN'])
  const body = omitUndefined({ ratelimit, traceId, ruleSetId })
  const found = (await client.request('POST', '/api/ratelimit/explain/rejection', { body })).body as PastRejections
  process.exitCode = found.rejections.length > 0 ? exitStatus.ok : exitStatus.negative
  if (options.json) printJson(found)
  else for (const line of rejectionLines(found, paintFor(process.stdout))) print(line)
}

function explainLocally(options: ExplainCommandOptions): Promise<Explanation> {
  const { permits, cost: costs, limit } = options
  return withLocalGate(options, (gate, ruleSetId) =>
    gate.explain(contextOf(options), { ruleSetId, permits, costs, limit }),
  )
}

async function askServer(options: ExplainCommandOptions, url: string): Promise<Explanation> {
  const { ruleSet: ruleSetId, permits, cost: costs, limit } = options
  const body = { ...contextOf(options), ...omitUndefined({ ruleSetId, permits, costs, limit }) }
  const client = serverClient(url, ['FLUXGATE_ADMIN_TOKEN'])
  return (await client.request('POST', '/api/ratelimit/explain', { body })).body as Explanation
}
