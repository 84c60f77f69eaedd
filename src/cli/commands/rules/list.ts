import { Command } from 'commander'
import { ticksPerMs } from '../../../core/clock.js'
import type { RuleDocument, RuleSetDocument } from '../../../core/contracts/rule-store.js'
import { parseRuleSets } from '../../../rules/schema/parse-rules.js'
import { exportRules } from '../../../rules/store/copy-rules.js'
import { exitStatus } from '../../exit-status.js'
import { limitText } from '../../output/limit-text.js'
import { print, printJson } from '../../output/output.js'
import { left, renderTable, right } from '../../output/table.js'
import { onTarget, type RulesTarget, type TargetOptions, withTarget } from './target.js'

const examples = `
Examples:
  $ fluxgate rules list
      list the rule sets of ./rules.yaml, or of the rule store in ./fluxgate.yaml
  $ fluxgate rules list api --server http://127.0.0.1:8090
      list the rules of rule set "api" on a server
  $ fluxgate rules list --json | jq '.[].id'

Exit status: 0 success, 1 rule set not found, 2 the rules could not be read.
`

export function rulesListCommand(): Command {
  return withTarget(new Command('list'))
    .description('List rule sets, or the rules of one of them.')
    .argument('[rule-set]', 'rule set ID')
    .option('--json', 'print the documents as JSON')
    .addHelpText('after', examples)
    .action((id: string | undefined, options: TargetOptions & { json?: true }) =>
      onTarget(options, (target) => (id === undefined ? listSets(target, options) : listRules(target, id, options))),
    )
}

async function listSets(target: RulesTarget, { json }: { json?: true }): Promise<void> {
  // `exportRules` validates all rules and throws if any is invalid, so the list is never incomplete.
  const { ruleSets } = await exportRules(target)
  const sets = ruleSets as RuleSetDocument[]
  if (json) return printJson(sets)
  const rows = sets.map(({ id, strategy = 'all', rules, description = '' }) => {
    return [id, String(rules.length), strategy, description]
  })
  const columns = [left('rule set'), right('rules'), left('strategy'), left('description')]
  print(renderTable(columns, rows).join('\n'))
}

async function listRules(target: RulesTarget, id: string, { json }: { json?: true }): Promise<void> {
  const found = await target.getRuleSet(id)
  if (found === undefined) return printNotFound(`Rule set "${id}" does not exist in ${target.source}.`)
  if (json) return printJson(found.rules)
  const columns = [left('rule'), right('priority'), left('path'), left('limit'), left('by'), left('state')]
  print(renderTable(columns, found.rules.map(rowOf)).join('\n'))
}

/** The parsed rule as a table row, independent of how the document spells it. */
function rowOf(document: RuleDocument): string[] {
  const rule = parseRuleSets([{ id: 'one', rules: [document] }])[0]?.rules[0]
  if (rule === undefined) return [document.id]
  const limit = rule.bands.map(({ calendar, windowTicks, ...band }) =>
    limitText({ ...band, windowMs: windowTicks / ticksPerMs, calendar: calendar?.unit, cost: rule.cost }),
  )
  const { mode, enforcePercent = 100 } = rule
  const isGradual = mode === 'ENFORCE' && enforcePercent < 100
  const words = [!rule.enabled && 'off', mode === 'SHADOW' && 'shadow', isGradual && `enforced for ${enforcePercent}%`]
  const state = words.filter((word) => word !== false)
  return [rule.id, String(rule.priority), rule.path, limit.join(', '), rule.limitScope, state.join(', ')]
}

/** Prints a negative result to standard error and sets exit status 1. */
export function printNotFound(text: string): void {
  process.stderr.write(`${text}\n`)
  process.exitCode = exitStatus.negative
}
