import { Command } from 'commander'
import { exportRules } from '../../../rules/store/copy-rules.js'
import { printDocument } from './document.js'
import { printNotFound } from './list.js'
import { onTarget, type TargetOptions, withTarget } from './target.js'

interface DocumentOptions extends TargetOptions {
  readonly json?: true
}

const getExamples = `
Examples:
  $ fluxgate rules get api
      print the rule set as YAML, with versions and dates
  $ fluxgate rules get api login --server http://127.0.0.1:8090 --json

Exit status: 0 success, 1 rule set or rule not found, 2 the rules could not be read.
`

export function rulesGetCommand(): Command {
  return withTarget(new Command('get'))
    .description('Print one rule set, or one of its rules.')
    .argument('<rule-set>', 'rule set ID')
    .argument('[rule]', 'rule ID')
    .option('--json', 'print JSON instead of YAML')
    .addHelpText('after', getExamples)
    .action((ruleSetId: string, ruleId: string | undefined, options: DocumentOptions) =>
      onTarget(options, async (target) => {
        const set = await target.getRuleSet(ruleSetId)
        if (set === undefined) return printNotFound(`Rule set "${ruleSetId}" does not exist in ${target.source}.`)
        if (ruleId === undefined) return printDocument(set, options)
        const rule = set.rules.find(({ id }) => id === ruleId)
        if (rule === undefined) return printNotFound(`Rule "${ruleId}" does not exist in rule set "${ruleSetId}".`)
        printDocument(rule, options)
      }),
    )
}

const exportExamples = `
Examples:
  $ fluxgate rules export > backup.yaml
  $ fluxgate rules export --server http://127.0.0.1:8090 | fluxgate rules apply - --rules copy.yaml
      copy the rules of a server into a file

Exit status: 0 success, 2 the rules could not be read.
`

export function rulesExportCommand(): Command {
  return withTarget(new Command('export'))
    .description('Print all rule sets as one document, without versions and dates.')
    .option('--json', 'print JSON instead of YAML')
    .addHelpText('after', exportExamples)
    .action((options: DocumentOptions) =>
      onTarget(options, async (target) => printDocument(await exportRules(target), options)),
    )
}
