#!/usr/bin/env node
import { Command } from 'commander'
import { packageVersion } from '../program/package-version.js'
import { run } from './run.js'

/** Each is loaded when it is asked for, because none needs everything that all of them need. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import('./commands/start.js')).startCommand(),
  serve: async () => (await import('./commands/serve.js')).serveCommand(),
  gateway: async () => (await import('./commands/gateway.js')).gatewayCommand(),
  check: async () => (await import('./commands/check.js')).checkCommand(),
  rules: async () => (await import('./commands/rules/rules.js')).rulesCommand(),
  simulate: async () => (await import('./commands/simulate/simulate.js')).simulateCommand(),
  doctor: async () => (await import('./commands/doctor.js')).doctorCommand(),
  bulk: async () => (await import('./commands/bulk/bulk.js')).bulkCommand(),
  completion: async () =>
    (await import('./commands/completion.js')).completionCommand(() => programOf(Object.keys(commands))),
}

async function programOf(names: readonly string[]): Promise<Command> {
  const program = new Command('fluxgate')
    // What stands behind the name of a command is its own, whatever the commands above it know.
    .enablePositionalOptions()
    .description('Rate limiting that is exact to the permit.')
    .version(packageVersion())
    .addHelpText('after', '\nfluxgate <command> --help shows its options with examples.')
  for (const name of names) program.addCommand(await (commands[name] as () => Promise<Command>)())
  return program
}

const asked = process.argv[2] ?? ''
// What names none of them may be a question about all.
await run(await programOf(Object.hasOwn(commands, asked) ? [asked] : Object.keys(commands)), process.argv)
