#!/usr/bin/env node
import { Command } from 'commander'
import { packageVersion } from '../app/package-version.js'
import { run } from './run.js'

/** Each is loaded when it is asked for, because none needs everything that all of them need. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import('./start.js')).startCommand(),
  serve: async () => (await import('./serve.js')).serveCommand(),
  gateway: async () => (await import('./gateway.js')).gatewayCommand(),
  check: async () => (await import('./check.js')).checkCommand(),
  rules: async () => (await import('./rules.js')).rulesCommand(),
  simulate: async () => (await import('./simulate.js')).simulateCommand(),
  doctor: async () => (await import('./doctor.js')).doctorCommand(),
  bulk: async () => (await import('./bulk.js')).bulkCommand(),
  completion: async () => (await import('./completion.js')).completionCommand(() => programOf(Object.keys(commands))),
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
