#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { bulkCommand } from './bulk.js'
import { checkCommand } from './check.js'
import { gatewayCommand } from './gateway.js'
import { rulesCommand } from './rules.js'
import { run } from './run.js'
import { serveCommand } from './serve.js'
import { simulateCommand } from './simulate.js'
import { startCommand } from './start.js'

const packageFile = new URL('../../package.json', import.meta.url)
const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }

const program = new Command('fluxgate')
  .description('Rate limiting that is exact to the permit.')
  .version(version)
  .addHelpText('after', '\nfluxgate <command> --help shows its options with examples.')
  .addCommand(startCommand())
  .addCommand(serveCommand())
  .addCommand(gatewayCommand())
  .addCommand(checkCommand())
  .addCommand(rulesCommand())
  .addCommand(simulateCommand())
  .addCommand(bulkCommand())

await run(program, process.argv)
