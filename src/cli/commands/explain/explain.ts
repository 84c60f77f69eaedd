import { Command, Option } from 'commander'
import type { Explanation } from '../../../core/explain/explanation.js'
import { omitUndefined } from '../../../core/omit-undefined.js'
import type { PastRejections } from '../../../server/routes/explain/past-rejections.js'
import { exitStatus } from '../../exit-status.js'
import { UsageError } from '../../failure.js'
import { withLocalGate } from '../../local-gate.js'
import { bodyOf, type DecisionOptions, withDecisionOptions } from '../../options/decision-options.js'
import { wholeNumber } from '../../options/option-values.js'
import { contextOf } from '../../options/request-options.js'
import { adminClient } from '../../options/server-option.js'
import { paintFor, print, printJson } from '../../output/output.js'
import { rejectionLines } from './past.js'
import { explanationLines } from './report.js'

interface ExplainCommandOptions extends DecisionOptions {
  readonly limit?: number
  readonly ratelimit?: string
  readonly traceId?: string
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
  const command = new Command('explain').description(
    'Explain the decision about a request: rules, conditions, keys and buckets.',
  )
  return withDecisionOptions(command, 'FLUXGATE_ADMIN_TOKEN')
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
  const explanation = await (options.server === undefined ? explainLocally(options) : askServer(options))
  process.exitCode = explanation.decision.allowed ? exitStatus.ok : exitStatus.negative
  if (options.json) printJson(explanation)
  else for (const line of explanationLines(explanation, Date.now(), paintFor(process.stdout))) print(line)
}

/** Only a server knows past rejections. The exit status is 1 if it finds no match. */
async function explainPast(options: ExplainCommandOptions): Promise<void> {
  const { server, ratelimit, traceId, ruleSet: ruleSetId } = options
  if (server === undefined)
    throw new UsageError('--ratelimit and --trace-id require --server: the server has the recent rejections.')
  const body = omitUndefined({ ratelimit, traceId, ruleSetId })
  const response = await adminClient(options).request('POST', '/api/ratelimit/explain/rejection', { body })
  const found = response.body as PastRejections
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

async function askServer(options: ExplainCommandOptions): Promise<Explanation> {
  const body = { ...bodyOf(options), ...omitUndefined({ limit: options.limit }) }
  return (await adminClient(options).request('POST', '/api/ratelimit/explain', { body })).body as Explanation
}
