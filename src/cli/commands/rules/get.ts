import { Command } from 'commander'
import { stringify } from 'yaml'
import { onOneLine, withWriting } from '../../../core/json/written-json.js'
import { exportRules } from '../../../rules/store/copy-rules.js'
import { print, printJson } from '../../output/output.js'
import { absent } from './list.js'
import { onTarget, type TargetOptions, withTarget } from './target.js'

interface DocumentOptions extends TargetOptions {
  readonly json?: true
}

const getExamples = `
Examples:
  $ fluxgate rules get api
      the rule set as YAML, with versions and dates
  $ fluxgate rules get api login --server http://127.0.0.1:8090 --json

Exit status: 0 ok, 1 there is no such rule set or rule, 2 it could not be read.
`

export function rulesGetCommand(): Command {
  return withTarget(new Command('get'))
    .description('Print one rule set, or one of its rules.')
    .argument('<rule-set>', 'the id of a rule set')
    .argument('[rule]', 'the id of a rule in it')
    .option('--json', 'print JSON instead of YAML')
    .addHelpText('after', getExamples)
    .action((ruleSetId: string, ruleId: string | undefined, options: DocumentOptions) =>
      onTarget(options, async (target) => {
        const set = await target.getRuleSet(ruleSetId)
        if (set === undefined) return absent(`There is no rule set "${ruleSetId}" in ${target.source}.`)
        if (ruleId === undefined) return tell(set, options)
        const rule = set.rules.find(({ id }) => id === ruleId)
        if (rule === undefined) return absent(`There is no rule "${ruleId}" in the rule set "${ruleSetId}".`)
        tell(rule, options)
      }),
    )
}

const exportExamples = `
Examples:
  $ fluxgate rules export > backup.yaml
  $ fluxgate rules export --server http://127.0.0.1:8090 | fluxgate rules apply - --rules copy.yaml
      from a server into a file

Exit status: 0 ok, 2 they could not be read.
`

export function rulesExportCommand(): Command {
  return withTarget(new Command('export'))
    .description('Print all rule sets as one document, without what only a store knows: versions and dates.')
    .option('--json', 'print JSON instead of YAML')
    .addHelpText('after', exportExamples)
    .action((options: DocumentOptions) => onTarget(options, async (target) => tell(await exportRules(target), options)))
}

/** What a person wrote is read again as it was; keys are not sorted and lines are not broken. */
function tell(document: unknown, { json }: DocumentOptions): void {
  if (json) printJson(document)
  else print(withWriting(document, yamlText, onOneLine).trimEnd())
}

const yamlText = (document: unknown): string => stringify(document, { lineWidth: 0, aliasDuplicateObjects: false })
