import { Command, Option } from 'commander'
import { jsonText, onOneLine } from '../../../core/json/written-json.js'
import type { RuleSetDocument } from '../../../core/rule-store.js'
import { parseRuleSets } from '../../../rules/schema/schema.js'
import { importRules } from '../../../rules/store/copy-rules.js'
import { setsOf } from '../../../rules/store/document-sets.js'
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
      each rule set of the file takes the place of the one with its id; others stay
  $ fluxgate rules apply limits.yaml --prune --dry-run
      what would change if there were no others
  $ generate-rules | fluxgate rules apply - --config fluxgate.yaml

Everything is checked before anything is written. Who has been faster is not overwritten: apply again.
Exit status: 0 done, 2 there are mistakes, or it could not be done.
`

export function rulesApplyCommand(): Command {
  return withTarget(new Command('apply'))
    .description('Put the rule sets of documents where rules are kept, and say what has changed.')
    .argument('<files...>', 'YAML or JSON; - is standard input')
    .addOption(new Option('--prune', 'remove rule sets that no document has').conflicts('onlyNew'))
    .option('--only-new', 'leave rule sets alone that are there already')
    .option('--dry-run', 'only say what would change')
    .option('--json', 'print { changes: [{ ruleSetId, action, fields, rules }] }')
    .addHelpText('after', applyExamples)
    .action((files: readonly string[], options: ApplyOptions) =>
      onTarget(options, async (target) => {
        const changes = await withStatus(async (status) => {
          const given = await documentsOf(files, status)
          const document = options.onlyNew ? await newTo(target, given) : given
          for (const set of document.ruleSets) assertFits(set, target)
          const found = await compare(document, target, options.prune === true, status)
          status.show(`writing ${ruleCount(document)}`)
          if (!options.dryRun)
            await importRules(document, target, { by: editor(), removeOthers: options.prune === true })
          return found
        })
        tell(changes, options, target.source)
      }),
    )
}

const diffExamples = `
Examples:
  $ fluxgate rules diff limits.yaml --server http://127.0.0.1:8090
      what rules apply would change there
  $ fluxgate rules diff limits.yaml --prune --json

Exit status: 0 they are the same, 1 there are differences, 2 they could not be compared.
`

export function rulesDiffCommand(): Command {
  return withTarget(new Command('diff'))
    .description('Say what applying documents would change, rule by rule and field by field.')
    .argument('<files...>', 'YAML or JSON; - is standard input')
    .option('--prune', 'also what would be removed because no document has it')
    .option('--json', 'print { changes: [{ ruleSetId, action, fields, rules }] }')
    .addHelpText('after', diffExamples)
    .action((files: readonly string[], options: ApplyOptions) =>
      onTarget(options, async (target) => {
        const changes = await withStatus(async (status) =>
          compare(await documentsOf(files, status), target, options.prune === true, status),
        )
        process.exitCode = changes.length === 0 ? exitStatus.ok : exitStatus.no
        tell(changes, options, target.source)
      }),
    )
}

/** Shows what a command with many rules is doing, and leaves nothing of it behind. */
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

/** Several documents are one, so that they are checked together. */
async function documentsOf(files: readonly string[], status: StatusLine): Promise<RulesDocument> {
  const ruleSets: unknown[] = []
  for (const file of files) {
    status.show(`reading ${file === '-' ? 'standard input' : file}`)
    const document = await readDocument(file)
    parseRuleSets(document, file === '-' ? 'standard input' : file)
    ruleSets.push(...setsOf(document))
  }
  const ids = (ruleSets as WrittenSet[]).map(({ id }) => id)
  const twice = ids.find((id, i) => ids.indexOf(id) !== i)
  if (twice !== undefined) throw new UsageError(`The rule set "${twice}" is in several of the documents.`)
  return { ruleSets: ruleSets as WrittenSet[] }
}

/** Before anything is sent: what is refused in the middle would leave a part of the document applied. */
function assertFits(set: WrittenSet, { source, maxSetBytes = Number.POSITIVE_INFINITY }: RulesTarget): void {
  if (maxSetBytes === Number.POSITIVE_INFINITY) return
  const bytes = Buffer.byteLength(jsonText(set))
  if (bytes <= maxSetBytes) return
  throw new UsageError(
    `The rule set "${set.id}" has ${set.rules.length} rules in ${bytes} bytes of JSON; ${source} takes ${maxSetBytes} at once. ` +
      'Nothing was changed. Apply it where the server keeps its rules, with --config or --rules, or split it into several rule sets.',
  )
}

/** Without the rule sets that are there already. */
async function newTo(target: RulesTarget, { ruleSets }: RulesDocument): Promise<RulesDocument> {
  const known = new Set((await allSets(target)).map(({ id }) => id))
  return { ruleSets: ruleSets.filter(({ id }) => !known.has(id)) }
}

async function compare(
  { ruleSets }: RulesDocument,
  target: RulesTarget,
  isWhole: boolean,
  status: StatusLine,
): Promise<SetChange[]> {
  status.show(`comparing ${ruleCount({ ruleSets })}`)
  const changes: (SetChange | undefined)[] = []
  for (const set of ruleSets) changes.push(changesOf(await target.getRuleSet(set.id), set))
  if (isWhole)
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

function tell(changes: readonly SetChange[], { json, dryRun }: ApplyOptions, source: string): void {
  if (json) printJson({ changes })
  else if (changes.length === 0) print(`Nothing ${dryRun ? 'would change' : 'differs'} in ${source}.`)
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

const mostShown = 120

function short(value: unknown): string {
  if (value === undefined) return '(none)'
  const text = onOneLine(jsonText(value))
  return text.length > mostShown ? `${text.slice(0, mostShown)}…` : text
}
