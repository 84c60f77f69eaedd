import { Command, Option } from 'commander'
import type { ActiveBan } from '../../../core/contracts/ban-store.js'
import { omitUndefined } from '../../../core/omit-undefined.js'
import { adminClient, serverOption } from '../../options/server-option.js'
import { print, printJson } from '../../output/output.js'
import {
  deleteEntry,
  entryPath,
  getCommand,
  keyCommand,
  listCommand,
  type RuleEntries,
  type ServerOptions,
} from '../../rule-entries.js'

const bans: RuleEntries<ActiveBan> = {
  name: 'bans',
  rule: 'a ban',
  key: 'an address',
  missing: 'The key is not banned.',
  isMissing: /banned/i,
  columns: ['key', 'until', 'bans'],
  rowOf: ({ key, until, count }) => [key, until, String(count)],
}

const listHelp = `
Examples:
  $ fluxgate bans list api login
  $ fluxgate bans list api login --prefix 203. --json

Exit status: 0 success, 2 unknown rule, or failure.
`
const getHelp = '\nExit status: 0 success, 1 the key is not banned, 2 unknown rule, or failure.\n'

export function bansCommand(): Command {
  return new Command('bans')
    .description('Show and change the bans of a rule on a running server.')
    .addCommand(
      listCommand(bans, 'List the active bans of a rule, sorted by key.', 'key, until').addHelpText('after', listHelp),
    )
    .addCommand(getCommand(bans, 'Print the ban of a key.').addHelpText('after', getHelp))
    .addCommand(setCommand())
    .addCommand(liftCommand())
}

const setExamples = `
Examples:
  $ fluxgate bans set api login 203.0.113.7
  $ fluxgate bans set api login 203.0.113.7 --for 1h
  $ fluxgate bans set api login 203.0.113.7 --until 2027-01-01T00:00:00Z

Replaces an existing ban of the key. Exit status: 0 success, 2 invalid ban, unknown rule, or failure.
`

function setCommand(): Command {
  return keyCommand(bans, 'set', 'Ban a key by hand.')
    .addOption(
      new Option('--for <duration>', "length of the ban, such as 15m (default: that of the rule's ban)").conflicts(
        'until',
      ),
    )
    .option('--until <time>', 'end of the ban: an ISO 8601 date')
    .addOption(serverOption())
    .option('--json', 'print the ban')
    .addHelpText('after', setExamples)
    .action(set)
}

interface SetOptions extends ServerOptions {
  readonly for?: string
  readonly until?: string
}

async function set(ruleSet: string, rule: string, key: string, options: SetOptions): Promise<void> {
  const { for: length, until, json } = options
  const body = omitUndefined({ for: length, until })
  const path = entryPath('bans', ruleSet, rule, key)
  const { body: ban } = await adminClient(options).request('PUT', path, { body })
  if (json) printJson(ban)
  else print(`${(ban as ActiveBan).key} is banned until ${(ban as ActiveBan).until}.`)
}

const liftCommand = (): Command =>
  keyCommand(bans, 'lift', 'Lift the ban of a key, and clear its escalation.')
    .addOption(serverOption())
    .option('--json', 'print { lifted }')
    .addHelpText('after', '\nExit status: 0 lifted, 1 the key is not banned, 2 unknown rule, or failure.\n')
    .action((ruleSet: string, rule: string, key: string, options: ServerOptions) =>
      deleteEntry(bans, [ruleSet, rule, key], options, 'lifted', `The ban of ${key} is lifted.`),
    )
