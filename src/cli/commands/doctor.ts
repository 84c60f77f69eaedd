import { Command, Option } from 'commander'
import { loadConfig } from '../../config/config.js'
import { examine, type Finding } from '../../program/doctor/doctor.js'
import { exitStatus } from '../exit-status.js'
import { type Colour, paintFor, print, printJson } from '../output/output.js'

interface DoctorOptions {
  readonly config?: string
  readonly only?: 'server' | 'gateway'
  readonly json?: true
}

const examples = `
Examples:
  $ fluxgate doctor
      can ./fluxgate.yaml work here? Connections, versions, clocks, rights, ports
  $ fluxgate doctor --config /etc/fluxgate/fluxgate.yaml --only server --json

Nothing is changed. Exit status: 0 it can, 1 it cannot, 2 the configuration has mistakes.
`

export function doctorCommand(): Command {
  return new Command('doctor')
    .description('Say whether this configuration can work here, and what to do if not.')
    .option('--config <file>', 'settings; ./fluxgate.yaml if there is one')
    .addOption(new Option('--only <part>', 'look only at what this part needs').choices(['server', 'gateway']))
    .option('--json', 'print { ok, findings: [{ name, status, message, advice }] }')
    .addHelpText('after', examples)
    .action(doctor)
}

async function doctor({ config: path, only, json }: DoctorOptions): Promise<void> {
  const config = await loadConfig({ path, env: process.env, cwd: process.cwd() })
  const findings = await examine(config, only === undefined ? ['server', 'gateway'] : [only])
  const isWell = findings.every(({ status }) => status !== 'fail')
  process.exitCode = isWell ? exitStatus.ok : exitStatus.no
  if (json) printJson({ ok: isWell, findings })
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
  // What a server has said may have several lines.
  const [first = '', ...rest] = message.split('\n')
  return [
    `${paint(colour, mark)} ${name}: ${first}`,
    ...rest.map((line) => `    ${line.trim()}`),
    ...(advice === undefined ? [] : [`    ${paint('dim', advice)}`]),
  ]
}
