import { Command, Option } from 'commander'
import { FluxGateError, type ValidationIssue } from '../../../core/errors.js'
import { finish } from '../../../core/scheduling/steps.js'
import { importLimits } from '../../../envoy/import/import-limits.js'
import type { RuleSetInput } from '../../../rules/schema/input.js'
import { checkRuleSets } from '../../../rules/schema/parse-rules.js'
import { describeIssue } from '../../../validation/issues.js'
import { exitStatus } from '../../exit-status.js'
import { printDocument, readDocument } from './document.js'

const examples = `
Examples:
  $ fluxgate rules import --from envoy ratelimit/config.yaml > rules.yaml
  $ fluxgate rules import --from envoy config/*.yaml | fluxgate rules apply - --server http://127.0.0.1:8090

Everything that has no equivalent is reported with its position, and nothing is printed.
Exit status: 0 success, 1 a file has no equivalent as rules, 2 a file could not be read.
`

export function rulesImportCommand(): Command {
  return new Command('import')
    .description('Convert the configuration of another rate limiter and print it as rules.')
    .argument('<files...>', 'files of the other rate limiter, YAML or JSON; - for standard input')
    .addOption(new Option('--from <format>', 'format of the files').choices(['envoy']).makeOptionMandatory())
    .option('--json', 'print JSON instead of YAML')
    .addHelpText('after', examples)
    .action(importRules)
}

async function importRules(files: readonly string[], options: { readonly json?: true }): Promise<void> {
  const ruleSets: RuleSetInput[] = []
  let failed = false
  const report = (file: string, level: string, issues: readonly ValidationIssue[]): void => {
    for (const issue of issues) process.stderr.write(`${level}: ${file}: ${describeIssue(issue)}\n`)
  }
  for (const file of files) {
    const source = await read(file)
    if (source === undefined) return
    const { ruleSet, errors, notes } = importLimits(source.document)
    report(file, 'error', finish(source.locate(errors)))
    report(file, 'note', finish(source.locate(notes)))
    if (ruleSet === undefined) failed = true
    else if (ruleSets.some(({ id }) => id === ruleSet.id)) {
      report(file, 'error', finish(source.locate([{ path: 'domain', message: 'is the domain of an earlier file' }])))
      failed = true
    } else ruleSets.push(ruleSet)
  }
  const { errors } = failed ? { errors: [] } : checkRuleSets({ ruleSets })
  report('the converted rules', 'error', errors)
  if (failed || errors.length > 0) {
    process.exitCode = exitStatus.negative
    return
  }
  printDocument({ ruleSets }, options)
}

async function read(file: string): Promise<Awaited<ReturnType<typeof readDocument>> | undefined> {
  try {
    return await readDocument(file)
  } catch (error) {
    if (!(error instanceof FluxGateError)) throw error
    process.stderr.write(`error: ${error.message}\n`)
    process.exitCode = exitStatus.failed
    return undefined
  }
}
