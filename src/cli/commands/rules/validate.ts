import { Command } from 'commander'
import { FluxGateError, type ValidationIssue } from '../../../core/errors.js'
import { finish } from '../../../core/scheduling/steps.js'
import { checkRuleSets } from '../../../rules/schema/parse-rules.js'
import { describeIssue } from '../../../validation/issues.js'
import { exitStatus } from '../../exit-status.js'
import { type Paint, paintFor, print, printJson } from '../../output/output.js'
import { readDocument } from './document.js'

const examples = `
Examples:
  $ fluxgate rules validate rules.yaml
  $ fluxgate rules validate config/*.yaml --json
  $ generate-rules | fluxgate rules validate -

Exit status: 0 all files are valid, 1 a file is invalid, 2 a file could not be read.
`

export function rulesValidateCommand(): Command {
  return new Command('validate')
    .description('Validate rule files and print every error with its location.')
    .argument('<files...>', 'rule files, YAML or JSON; - for standard input')
    .option('--json', 'print { valid, errors: [{ file, path, message, line, column }] }')
    .addHelpText('after', examples)
    .action(validate)
}

interface Checked {
  readonly file: string
  readonly sets: number
  readonly rules: number
  readonly errors: readonly ValidationIssue[]
  readonly isReadable: boolean
}

async function validate(files: readonly string[], options: { json?: true }): Promise<void> {
  const checked: Checked[] = []
  for (const file of files) checked.push(await check(file))
  const valid = checked.every(({ errors }) => errors.length === 0)
  const isReadable = checked.every((one) => one.isReadable)
  process.exitCode = valid ? exitStatus.ok : isReadable ? exitStatus.negative : exitStatus.failed
  if (options.json) {
    const errors = checked.flatMap(({ file, errors }) => errors.map((issue) => ({ file, ...issue })))
    return printJson({ valid, errors })
  }
  for (const one of checked) printResult(one)
}

async function check(file: string): Promise<Checked> {
  try {
    const { document, locate } = await readDocument(file)
    const { ruleSets, errors: issues } = checkRuleSets(document)
    const errors = issues.length === 0 ? issues : finish(locate(issues))
    const rules = ruleSets.reduce((sum, set) => sum + set.rules.length, 0)
    return { file, sets: ruleSets.length, rules, errors, isReadable: true }
  } catch (error) {
    if (!(error instanceof FluxGateError)) throw error
    const isReadable = error.code !== 'FLUXGATE_RULES_UNREADABLE'
    const errors = error.errors.length > 0 ? error.errors : [{ path: '', message: error.message }]
    return { file, sets: 0, rules: 0, errors, isReadable }
  }
}

/** Valid files are reported on standard output, errors on standard error. */
function printResult({ file, sets, rules, errors }: Checked): void {
  const name = file === '-' ? 'standard input' : file
  if (errors.length === 0) print(`${mark(process.stdout, 'green', '✓')} ${name}: ${counted(sets, rules)}`)
  const located = errors.map((issue) => (issue.path === '' ? issue.message : `${name}: ${describeIssue(issue)}`))
  for (const line of located) process.stderr.write(`${mark(process.stderr, 'red', '✗')} ${line}\n`)
}

const mark = (stream: NodeJS.WriteStream, colour: Parameters<Paint>[0], sign: string): string =>
  paintFor(stream)(colour, sign)

const counted = (sets: number, rules: number): string =>
  `${sets} rule ${sets === 1 ? 'set' : 'sets'}, ${rules} ${rules === 1 ? 'rule' : 'rules'}`
