import { Command, Option } from 'commander'
import type { RuleSetDocument } from '../../../core/contracts/rule-store.js'
import { jsonText, onOneLine } from '../../../core/json/source-text.js'
import { finish } from '../../../core/scheduling/steps.js'
import { ruleSetSteps } from '../../../rules/schema/parse-rules.js'
import { importRules } from '../../../rules/store/copy-rules.js'
import { ruleSetsIn } from '../../../rules/store/document-sets.js'
import { exitStatus } from '../../exit-status.js'
import { UsageError } from '../../failure.js'
import { paintFor, print, printJson } from '../../output/output.js'
import { type StatusLine, statusLine } from '../../output/status-line.js'
import { changesOf, type SetChange, type WrittenSet } from './changes.js'
import { readDocument } from './document.js'
import { editor, onTarget, type RulesTarget, type TargetOptions, withTarget } from './target.js'

interface ApplyOptions extends TargetOptions {
  readonly prune?: true
  readonly onlyNew?: true
  readonly dryRun?: true
  readonly json?: true
}

interface RulesDocument {
  readonly ruleSets: readonly WrittenSet[]
}

const applyExamples = `
Examples:
  $ fluxgate rules apply limits.yaml --server http://127.0.0.1:8090
      create or replace each rule set of the file; leave all other rule sets unchanged
  $ fluxgate rules apply limits.yaml --prune --dry-run
      show what would change, including rule sets to remove
  $ generate-rules | fluxgate rules apply - --config fluxgate.yaml

All files are validated before anything is written.
Concurrent changes are never overwritten: the command fails with a conflict.
Exit status: 0 applied, 2 invalid rules, or the rules could not be applied.
`

export function rulesApplyCommand(): Command {
  return withTarget(new Command('apply'))
    .description('Create or replace rule sets from files, and print the changes.')
    .argument('<files...>', 'rule files, YAML or JSON; - for standard input')
    .addOption(new Option('--prune', 'remove rule sets that are in none of the files').conflicts('onlyNew'))
    .option('--only-new', 'skip rule sets that already exist')
    .option('--dry-run', 'print the changes without applying them')
    .option('--json', 'print { changes: [{ ruleSetId, action, fields, rules }] }')
    .addHelpText('after', applyExamples)
    .action((files: readonly string[], options: ApplyOptions) =>
      onTarget(options, async (target) => {
        const changes = await withStatus(async (status) => {
          const all = await documentsOf(files, status)
          const document = options.onlyNew ? await newTo(target, all) : all
          for (const set of document.ruleSets) assertFits(set, target)
          const found = await compare(document, target, options.prune === true, status)
          status.show(`writing ${ruleCount(document)}`)
          if (!options.dryRun)
            await importRules(document, target, { by: editor(), removeOthers: options.prune === true })
          return found
        })
        printChanges(changes, options, target.source)
      }),
    )
}

const diffExamples = `
Examples:
  $ fluxgate rules diff limits.yaml --server http://127.0.0.1:8090
      show what rules apply would change on a server
  $ fluxgate rules diff limits.yaml --prune --json

Exit status: 0 no differences, 1 differences found, 2 the rules could not be compared.
`

export function rulesDiffCommand(): Command {
  return withTarget(new Command('diff'))
    .description('Print what rules apply would change, rule by rule and field by field.')
    .argument('<files...>', 'rule files, YAML or JSON; - for standard input')
    .option('--prune', 'include rule sets that are in none of the files, as removed')
    .option('--json', 'print { changes: [{ ruleSetId, action, fields, rules }] }')
    .addHelpText('after', diffExamples)
    .action((files: readonly string[], options: ApplyOptions) =>
      onTarget(options, async (target) => {
        const changes = await withStatus(async (status) =>
          compare(await documentsOf(files, status), target, options.prune === true, status),
        )
        process.exitCode = changes.length === 0 ? exitStatus.ok : exitStatus.negative
        printChanges(changes, options, target.source)
      }),
    )
}

/** Runs `work` with a status line that is cleared at the end. */
async function withStatus<T>(work: (status: StatusLine) => Promise<T>): Promise<T> {
  const status = statusLine(process.stderr)
  try {
    return await work(status)
  } finally {
    status.clear()
  }
}

const ruleCount = ({ ruleSets }: RulesDocument): string =>
  `${ruleSets.reduce((count, { rules }) => count + rules.length, 0)} rules`

/** Merges all files into one document. Throws if a file is invalid or a rule set appears twice. */
async function documentsOf(files: readonly string[], status: StatusLine): Promise<RulesDocument> {
  const ruleSets: unknown[] = []
  for (const file of files) {
    status.show(`reading ${file === '-' ? 'standard input' : file}`)
    const { document, locate } = await readDocument(file)
    finish(ruleSetSteps(document, file === '-' ? 'standard input' : file, locate))
    ruleSets.push(...ruleSetsIn(document))
  }
  const ids = (ruleSets as WrittenSet[]).map(({ id }) => id)
  const duplicate = ids.find((id, i) => ids.indexOf(id) !== i)
  if (duplicate !== undefined)
    throw new UsageError(`Rule set "${duplicate}" appears in more than one file. Remove the duplicate.`)
  return { ruleSets: ruleSets as WrittenSet[] }
}

/** Runs before anything is sent: a rejection halfway through would leave the document partly applied. */
function assertFits(set: WrittenSet, { source, maxSetBytes = Number.POSITIVE_INFINITY }: RulesTarget): void {
  if (maxSetBytes === Number.POSITIVE_INFINITY) return
  const bytes = Buffer.byteLength(jsonText(set))
  if (bytes <= maxSetBytes) return
  throw new UsageError(
    `Rule set "${set.id}" (${set.rules.length} rules) is ${bytes} bytes of JSON; ${source} accepts at most ${maxSetBytes}. ` +
      "Nothing was changed. Apply it directly to the server's rule store with --config or --rules, or split it into several rule sets.",
  )
}

/** The rule sets that do not exist in the target yet. */
async function newTo(target: RulesTarget, { ruleSets }: RulesDocument): Promise<RulesDocument> {
  const known = new Set((await allSets(target)).map(({ id }) => id))
  return { ruleSets: ruleSets.filter(({ id }) => !known.has(id)) }
}

async function compare(
  { ruleSets }: RulesDocument,
  target: RulesTarget,
  prune: boolean,
  status: StatusLine,
): Promise<SetChange[]> {
  status.show(`comparing ${ruleCount({ ruleSets })}`)
  const changes: (SetChange | undefined)[] = []
  for (const set of ruleSets) changes.push(changesOf(await target.getRuleSet(set.id), set))
  if (prune)
    for (const other of await allSets(target))
      if (!ruleSets.some(({ id }) => id === other.id)) changes.push(changesOf(other, undefined))
  return changes.filter((change) => change !== undefined)
}

async function allSets(target: RulesTarget): Promise<RuleSetDocument[]> {
  const all: RuleSetDocument[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await target.listRuleSets({ limit: 100, cursor })
    all.push(...page.items)
    cursor = page.cursor
  }
  return all
}

function printChanges(changes: readonly SetChange[], { json }: ApplyOptions, source: string): void {
  if (json) printJson({ changes })
  else if (changes.length === 0) print(`No differences from ${source}.`)
  else print(changes.flatMap(linesOf).join('\n'))
}

function linesOf({ ruleSetId, action, fields, rules }: SetChange): string[] {
  const fieldLines = (changed: SetChange['fields'], indent: string): string[] =>
    changed.map(({ field, before, after }) => `${indent}${field}: ${short(before)} → ${short(after)}`)
  return [
    line(action, ruleSetId),
    ...fieldLines(fields, '    '),
    ...rules.flatMap((rule) => [`  ${line(rule.action, rule.ruleId)}`, ...fieldLines(rule.fields, '      ')]),
  ]
}

function line(action: SetChange['action'], id: string): string {
  const [colour, sign] = { added: ['green', '+'], removed: ['red', '-'], changed: ['yellow', '~'] }[action] as [
    'green' | 'red' | 'yellow',
    string,
  ]
  return paintFor(process.stdout)(colour, `${sign} ${id}`)
}

const maxValueLength = 120

function short(value: unknown): string {
  if (value === undefined) return '(none)'
  const text = onOneLine(jsonText(value))
  return text.length > maxValueLength ? `${text.slice(0, maxValueLength)}…` : text
}
