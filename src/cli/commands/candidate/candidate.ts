import { Command } from 'commander'
import { FluxGateError } from '../../../core/errors.js'
import type { CandidateReport } from '../../../gate/candidates/candidate-control.js'
import {
  dropCandidate,
  getCandidate,
  noCandidate,
  promoteCandidate,
  putCandidate,
} from '../../../rules/store/candidates.js'
import { ruleSetsIn } from '../../../rules/store/document-sets.js'
import { UsageError } from '../../failure.js'
import { adminClient, serverOption } from '../../options/server-option.js'
import { print, printJson } from '../../output/output.js'
import { readDocument } from '../rules/document.js'
import { printNotFound } from '../rules/list.js'
import { editor, onTarget, type RulesTarget, type TargetOptions, withTarget } from '../rules/target.js'
import { reportLines } from './report.js'

interface CandidateOptions extends TargetOptions {
  readonly json?: true
}

const examples = `
Examples:
  $ fluxgate candidate put api stricter.yaml --server http://127.0.0.1:8090
      evaluate another version of rule set api alongside the current one, without effect
  $ fluxgate candidate report api
      show what it would have rejected on the server at http://127.0.0.1:8090
  $ fluxgate candidate promote api --server http://127.0.0.1:8090
  $ fluxgate candidate drop api --server http://127.0.0.1:8090
`

const statuses = '\nExit status: 0 success, 1 the rule set has no candidate, 2 failure.\n'

const putExamples = `
Examples:
  $ fluxgate candidate put api stricter.yaml --server http://127.0.0.1:8090
  $ fluxgate rules get api | sed 's/capacity: 100/capacity: 80/' | fluxgate candidate put api -

Exit status: 0 created or replaced, 2 invalid rules, or failure.
`

const reportExamples = `
Examples:
  $ fluxgate candidate report api
      compare on http://127.0.0.1:8090
  $ fluxgate candidate report api --json | jq .rejectedThenOnly
      requests that only the candidate rejects

"now only" counts requests that only the current rules reject, "candidate only" those that only the candidate rejects.
Exit status: 0 success, 1 the rule set has no candidate, 2 the request to the server failed.
`

export function candidateCommand(): Command {
  return new Command('candidate')
    .description('Evaluate another version of a rule set alongside the current one, without effect.')
    .addCommand(putCommand())
    .addCommand(getCommand())
    .addCommand(reportCommand())
    .addCommand(promoteCommand())
    .addCommand(dropCommand())
    .addHelpText('after', examples)
}

/** A subcommand for the rule set that it names first. */
const ruleSetCommand = (name: string, description: string): Command =>
  new Command(name).description(description).argument('<rule-set>', 'id of the rule set')

const putCommand = (): Command =>
  withTarget(ruleSetCommand('put', 'Create or replace the candidate of a rule set from a file.'))
    .argument('<file>', 'rules file with one rule set, YAML or JSON; - for standard input')
    .option('--json', 'print the candidate as JSON')
    .addHelpText('after', putExamples)
    .action((ruleSetId: string, file: string, options: CandidateOptions) =>
      onTarget(options, async (target) => {
        const document = await candidateIn(file, ruleSetId)
        const { document: stored, created } = await putCandidate(target, ruleSetId, document, { by: editor() })
        if (options.json) printJson(stored)
        else print(`candidate of ${ruleSetId} ${created ? 'created' : 'replaced'}: ${rulesText(stored.rules.length)}`)
      }),
    )

const getCommand = (): Command =>
  withTarget(ruleSetCommand('get', 'Print the candidate of a rule set as JSON.'))
    .option('--json', 'print JSON, which is the default')
    .addHelpText('after', statuses)
    .action((ruleSetId: string, options: CandidateOptions) =>
      onCandidate(options, async (target) => {
        const found = await getCandidate(target, ruleSetId)
        if (found === undefined) throw noCandidate(ruleSetId)
        printJson(found)
      }),
    )

const reportCommand = (): Command =>
  ruleSetCommand('report', 'Compare the candidate with the current rules, by rule and by key.')
    .addOption(serverOption())
    .option('--json', 'print the report as JSON')
    .addHelpText('after', reportExamples)
    .action(async (ruleSetId: string, { json, ...options }: { server?: string; json?: true }) => {
      const path = `/api/rule-sets/${encodeURIComponent(ruleSetId)}/candidate/report`
      const { status, body } = await adminClient(options).request('GET', path, { expected: [404] })
      if (status === 404) return printNotFound((body as { detail: string }).detail)
      const report = body as CandidateReport
      if (json) printJson(report)
      else for (const line of reportLines(report)) print(line)
    })

const promoteCommand = (): Command =>
  withTarget(ruleSetCommand('promote', 'Replace the rule set with its candidate, and remove the candidate.'))
    .option('--json', 'print the rule set as JSON')
    .addHelpText('after', statuses)
    .action((ruleSetId: string, options: CandidateOptions) =>
      onCandidate(options, async (target) => {
        const promoted = await promoteCandidate(target, ruleSetId, { by: editor() })
        if (options.json) printJson(promoted)
        else print(`${ruleSetId} has version ${promoted.version}: ${rulesText(promoted.rules.length)}`)
      }),
    )

const dropCommand = (): Command =>
  withTarget(ruleSetCommand('drop', 'Remove the candidate of a rule set.'))
    .option('--json', 'print { ruleSetId, dropped }')
    .addHelpText('after', statuses)
    .action((ruleSetId: string, options: CandidateOptions) =>
      onCandidate(options, async (target) => {
        if (!(await dropCandidate(target, ruleSetId, { by: editor() }))) throw noCandidate(ruleSetId)
        if (options.json) printJson({ ruleSetId, dropped: true })
        else print(`candidate of ${ruleSetId} removed`)
      }),
    )

/** Like `onTarget`. A missing candidate is a negative result, as for rules that do not exist. */
const onCandidate = (options: CandidateOptions, use: (target: RulesTarget) => Promise<void>): Promise<void> =>
  onTarget(options, use).catch((error: unknown) => {
    if (!(error instanceof FluxGateError) || error.code !== 'FLUXGATE_CANDIDATE_UNKNOWN') throw error
    printNotFound(error.message)
  })

const rulesText = (count: number): string => `${count} ${count === 1 ? 'rule' : 'rules'}`

/** The only rule set of the file, or the one with the id of the rule set. The target validates it. */
async function candidateIn(file: string, ruleSetId: string): Promise<object> {
  const { document } = await readDocument(file)
  if (typeof document !== 'object' || document === null)
    throw new UsageError(`${file} must contain a rule set: { id, rules }.`)
  const sets = ruleSetsIn(document)
  const found = sets.length === 1 ? sets[0] : sets.find(({ id }) => id === ruleSetId)
  if (found === undefined)
    throw new UsageError(`${file} has ${sets.length} rule sets, none with the id "${ruleSetId}". Keep one in the file.`)
  return found
}
