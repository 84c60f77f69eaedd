import { Command, InvalidArgumentError, Option } from 'commander'
import { type CalendarUnit, calendarUnits } from '../../../core/calendar/calendar.js'
import type { Override } from '../../../core/contracts/override-store.js'
import { omitUndefined } from '../../../core/omit-undefined.js'
import type { AlgorithmName } from '../../../core/rule.js'
import { UsageError } from '../../failure.js'
import { adminClient, serverOption } from '../../options/server-option.js'
import { limitText } from '../../output/limit-text.js'
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

/** A band as the server returns it: with `refillSeconds`, `calendar` or `maxHold`. */
interface StoredBand {
  readonly algorithm: AlgorithmName
  readonly capacity: number
  readonly refillSeconds?: number
  readonly calendar?: string
}

interface StoredOverride extends Override {
  readonly bands?: readonly (StoredBand & Readonly<Record<string, unknown>>)[]
}

const overrides: RuleEntries<StoredOverride> = {
  name: 'overrides',
  rule: 'overrides: true',
  key: 'an address or a network such as 10.0.0.0/8',
  missing: 'No override exists for this key.',
  isMissing: /override/i,
  columns: ['key', 'action', 'limit', 'expires', 'note'],
  rowOf: ({ key, action, bands = [], expiresAt, note }) => [
    key,
    action,
    bands.map(({ refillSeconds = 0, ...band }) => limitText({ ...band, windowMs: refillSeconds * 1_000 })).join(', '),
    expiresAt === undefined ? '' : String(expiresAt),
    note ?? '',
  ],
}

const listHelp = `
Examples:
  $ fluxgate overrides list api per-key
  $ fluxgate overrides list api per-address --prefix 10. --json

Exit status: 0 success, 2 unknown rule, or failure.
`
const getHelp = '\nExit status: 0 success, 1 no override for this key, 2 unknown rule, or failure.\n'

export function overridesCommand(): Command {
  return new Command('overrides')
    .description('Show and change the overrides of a rule on a running server.')
    .addCommand(
      listCommand(overrides, 'List the overrides of a rule, sorted by key.', 'key, action').addHelpText(
        'after',
        listHelp,
      ),
    )
    .addCommand(getCommand(overrides, 'Print the override for a key.').addHelpText('after', getHelp))
    .addCommand(setCommand())
    .addCommand(deleteCommand())
}

const setExamples = `
Examples:
  $ fluxgate overrides set api per-key partner-7 --limit 5000/1m --note "contract 42"
  $ fluxgate overrides set api quotas partner-7 --limit 100000/month --limit 8/concurrent
  $ fluxgate overrides set api per-address 10.0.0.0/8 --allow
  $ fluxgate overrides set api per-address 203.0.113.7 --deny --expires-at 2027-01-01T00:00:00Z

Replaces an existing override for the key. Exit status: 0 success, 2 invalid override, unknown rule, or failure.
`

function setCommand(): Command {
  return keyCommand(overrides, 'set', 'Create or replace the override for a key.')
    .addOption(
      new Option(
        '--limit <capacity/window>',
        'another limit, such as 500/1m, 10000/month or 8/concurrent; repeat it for several bands',
      )
        .argParser(bands)
        .conflicts(['allow', 'deny']),
    )
    .addOption(new Option('--allow', 'no limit').conflicts('deny'))
    .option('--deny', 'reject every request')
    .option('--expires-at <time>', 'end of the override: an ISO 8601 date')
    .option('--note <text>', 'a note for people')
    .addOption(serverOption())
    .option('--json', 'print the override')
    .addHelpText('after', setExamples)
    .action(set)
}

interface LimitBand {
  readonly capacity: number
  readonly window?: string
  readonly algorithm?: AlgorithmName
  readonly calendar?: CalendarUnit
}

/** Collects a repeatable `capacity/window` option. The server validates the window. */
function bands(text: string, previous: readonly LimitBand[] = []): readonly LimitBand[] {
  const [, capacity, window] = /^(\d{1,10})\/(\S+)$/.exec(text.trim()) ?? []
  if (capacity === undefined || window === undefined)
    throw new InvalidArgumentError('It must have the form capacity/window, such as 500/1m.')
  return [...previous, { capacity: Number(capacity), ...windowOf(window) }]
}

function windowOf(text: string): Omit<LimitBand, 'capacity'> {
  const name = text.toUpperCase()
  if (name === 'CONCURRENT') return { algorithm: 'CONCURRENCY' }
  const calendar = calendarUnits.find((unit) => unit === name)
  return calendar === undefined ? { window: text } : { algorithm: 'FIXED_WINDOW', calendar }
}

interface SetOptions extends ServerOptions {
  readonly limit?: readonly LimitBand[]
  readonly allow?: true
  readonly deny?: true
  readonly expiresAt?: string
  readonly note?: string
}

async function set(ruleSet: string, rule: string, key: string, options: SetOptions): Promise<void> {
  const { limit, allow, deny, expiresAt, note, json } = options
  const action = limit !== undefined ? 'LIMIT' : allow ? 'ALLOW' : deny ? 'DENY' : undefined
  if (action === undefined) throw new UsageError('Choose one of --limit, --allow and --deny.')
  const client = adminClient(options)
  const body = { action, ...omitUndefined({ bands: limit, expiresAt, note }) }
  const { status, body: stored } = await client.request('PUT', entryPath('overrides', ruleSet, rule, key), { body })
  if (json) printJson(stored)
  else print(`Override for ${key} ${status === 201 ? 'created' : 'replaced'}.`)
}

const deleteCommand = (): Command =>
  keyCommand(overrides, 'delete', 'Delete the override for a key, so that the rule applies unchanged.')
    .addOption(serverOption())
    .option('--json', 'print { deleted }')
    .addHelpText('after', '\nExit status: 0 deleted, 1 no override for this key, 2 unknown rule, or failure.\n')
    .action((ruleSet: string, rule: string, key: string, options: ServerOptions) =>
      deleteEntry(overrides, [ruleSet, rule, key], options, 'deleted', `Override for ${key} deleted.`),
    )
