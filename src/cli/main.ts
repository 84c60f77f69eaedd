#!/usr/bin/env node
import { Command } from 'commander'
import { packageVersion } from '../program/package-version.js'
import { run } from './run.js'

/** Command modules are imported on demand: loading all of them would slow down every start. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  init: async () => (await import('./commands/init/init.js')).initCommand(),
  start: async () => (await import('./commands/start.js')).startCommand(),
  serve: async () => (await import('./commands/serve.js')).serveCommand(),
  gateway: async () => (await import('./commands/gateway.js')).gatewayCommand(),
  check: async () => (await import('./commands/check.js')).checkCommand(),
  explain: async () => (await import('./commands/explain/explain.js')).explainCommand(),
  rules: async () => (await import('./commands/rules/rules.js')).rulesCommand(),
  overrides: async () => (await import('./commands/overrides/overrides.js')).overridesCommand(),
  bans: async () => (await import('./commands/bans/bans.js')).bansCommand(),
  reset: async () => (await import('./commands/reset.js')).resetCommand(),
  top: async () => (await import('./commands/top/top.js')).topCommand(),
  candidate: async () => (await import('./commands/candidate/candidate.js')).candidateCommand(),
  simulate: async () => (await import('./commands/simulate/simulate.js')).simulateCommand(),
  doctor: async () => (await import('./commands/doctor.js')).doctorCommand(),
  bulk: async () => (await import('./commands/bulk/bulk.js')).bulkCommand(),
  completion: async () =>
    (await import('./commands/completion/completion.js')).completionCommand(() => programOf(Object.keys(commands))),
}

async function programOf(names: readonly string[]): Promise<Command> {
  const program = new Command('fluxgate')
    // Options after a command name belong to that command, even if a parent command has one of the same name.
    .enablePositionalOptions()
    .description('Distributed rate limiting: gateway, server, rules and tools.')
    .version(packageVersion())
    .addHelpText('after', '\nRun fluxgate <command> --help for its options and examples.')
  for (const name of names) program.addCommand(await (commands[name] as () => Promise<Command>)())
  return program
}

const requested = process.argv[2] ?? ''
// Without a known command name, all commands are loaded, for --help and for suggestions.
await run(await programOf(Object.hasOwn(commands, requested) ? [requested] : Object.keys(commands)), process.argv)
