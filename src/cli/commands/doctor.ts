import { Command, Option } from 'commander'
import { runChecks } from '../../program/doctor/doctor.js'
import type { Finding } from '../../program/doctor/finding.js'
import { exitStatus } from '../exit-status.js'
import { readConfig } from '../options/read-config.js'
import { configOption } from '../options/shared-options.js'
import { type Colour, paintFor, print, printJson } from '../output/output.js'

interface DoctorOptions {
  readonly config?: string
  readonly only?: 'server' | 'gateway'
  readonly json?: true
}

const examples = `
Examples:
  $ fluxgate doctor
      check ./fluxgate.yaml: connections, versions, clocks, permissions, ports
  $ fluxgate doctor --config /etc/fluxgate/fluxgate.yaml --only server --json

The checks change nothing.
Exit status: 0 no failures, 1 at least one check failed, 2 invalid configuration.
`

export function doctorCommand(): Command {
  return new Command('doctor')
    .description('Check that this configuration works on this machine, and suggest fixes.')
    .addOption(configOption())
    .addOption(new Option('--only <part>', 'run only the checks for this part').choices(['server', 'gateway']))
    .option('--json', 'print { ok, findings: [{ name, status, message, advice }] }')
    .addHelpText('after', examples)
    .action(doctor)
}

async function doctor(options: DoctorOptions): Promise<void> {
  const { only, json } = options
  const config = await readConfig(options)
  const findings = await runChecks(config, only === undefined ? ['server', 'gateway'] : [only])
  const ok = findings.every(({ status }) => status !== 'fail')
  process.exitCode = ok ? exitStatus.ok : exitStatus.negative
  if (json) printJson({ ok, findings })
  else print(findings.flatMap(linesOf).join('\n'))
}

const marks: Readonly<Record<Finding['status'], readonly [Colour, string]>> = {
  ok: ['green', '✓'],
  warn: ['yellow', '!'],
  fail: ['red', '✗'],
}

function linesOf({ name, status, message, advice }: Finding): string[] {
  const paint = paintFor(process.stdout)
  const [colour, mark] = marks[status]
  // Error messages of a server may span several lines.
  const [first = '', ...rest] = message.split('\n')
  return [
    `${paint(colour, mark)} ${name}: ${first}`,
    ...rest.map((line) => `    ${line.trim()}`),
    ...(advice === undefined ? [] : [`    ${paint('dim', advice)}`]),
  ]
}
