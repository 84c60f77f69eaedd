import { Command, InvalidArgumentError, Option } from 'commander'
import type { Override } from '../../../core/contracts/override-store.js'
import { omitUndefined } from '../../../core/omit-undefined.js'
import { exitStatus } from '../../exit-status.js'
import { UsageError } from '../../failure.js'
import { wholeNumber } from '../../options/option-values.js'
import { adminClient, serverOption } from '../../options/server-option.js'
import { print, printJson } from '../../output/output.js'
import { renderTable } from '../../output/table.js'

interface ServerOptions {
  readonly server?: string
  readonly json?: true
}

export function overridesCommand(): Command {
  return new Command('overrides')
    .description('Show and change the overrides of a rule on a running server.')
    .addCommand(listCommand())
    .addCommand(getCommand())
    .addCommand(setCommand())
    .addCommand(deleteCommand())
}

/** A subcommand for one rule. The arguments come first, so that they are the same for all of them. */
const ruleCommand = (name: string, description: string): Command =>
  new Command(name)
    .description(description)
    .argument('<rule-set>', 'id of the rule set')
    .argument('<rule>', 'id of the rule, which needs overrides: true')

const keyArgument = [
  '<key>',
  'the key; for rules that count by IP, an address or a network such as 10.0.0.0/8',
] as const

const listExamples = `
Examples:
  $ fluxgate overrides list api per-key
  $ fluxgate overrides list api per-address --prefix 10. --json

Exit status: 0 success, 2 unknown rule, or failure.
`

function listCommand(): Command {
  return ruleCommand('list', 'List the overrides of a rule, sorted by key.')
    .addOption(serverOption())
    .option('--prefix <text>', 'list only keys with this prefix')
    .addOption(new Option('--limit <n>', 'number of overrides (default: 100)').argParser(wholeNumber(1, 1_000_000)))
    .option('--json', 'print { overrides: [{ key, action, … }], more }')
    .addHelpText('after', listExamples)
    .action(list)
}

interface ListOptions extends ServerOptions {
  readonly prefix?: string
  readonly limit?: number
}

const pageSize = 1_000

async function list(ruleSet: string, rule: string, { limit = 100, prefix, json, ...target }: ListOptions) {
  const client = adminClient(target)
  const overrides: Override[] = []
  let cursor: string | null | undefined
  while (cursor !== null && overrides.length < limit) {
    const size = String(Math.min(pageSize, limit - overrides.length))
    const query = new URLSearchParams({ limit: size, ...omitUndefined({ prefix, cursor }) })
    const { body } = await client.request('GET', `${pathOf(ruleSet, rule)}?${query}`)
    const page = body as { readonly overrides: readonly Override[]; readonly cursor: string | null }
    overrides.push(...page.overrides)
    cursor = page.cursor
  }
  const more = cursor !== null
  if (json) return printJson({ overrides, more })
  if (overrides.length === 0) return print('No overrides.')
  const titles = ['key', 'action', 'limit', 'expires', 'note'].map((title) => ({ title, align: 'left' as const }))
  for (const line of renderTable(titles, overrides.map(rowOf))) print(line)
  if (more) print(`… more than ${limit}; use --limit or --prefix.`)
}

const rowOf = ({ key, action, bands = [], expiresAt, note }: Override): string[] => [
  key,
  action,
  bands.map(({ capacity, refillSeconds }) => `${capacity} per ${refillSeconds}s`).join(', '),
  expiresAt === undefined ? '' : String(expiresAt),
  note ?? '',
]

function getCommand(): Command {
  return ruleCommand('get', 'Print the override for a key.')
    .argument(...keyArgument)
    .addOption(serverOption())
    .option('--json', 'print compact JSON on one line')
    .addHelpText('after', '\nExit status: 0 success, 1 no override for this key, 2 unknown rule, or failure.\n')
    .action(get)
}

async function get(ruleSet: string, rule: string, key: string, { json, ...target }: ServerOptions): Promise<void> {
  const found = await adminClient(target).request('GET', pathOf(ruleSet, rule, key), { expected: [404] })
  if (found.status === 404) return none(found.body)
  if (json) print(JSON.stringify(found.body))
  else printJson(found.body)
}

const setExamples = `
Examples:
  $ fluxgate overrides set api per-key partner-7 --limit 5000/1m --note "contract 42"
  $ fluxgate overrides set api per-address 10.0.0.0/8 --allow
  $ fluxgate overrides set api per-address 203.0.113.7 --deny --expires-at 2027-01-01T00:00:00Z

Replaces an existing override for the key. Exit status: 0 success, 2 invalid override, unknown rule, or failure.
`

function setCommand(): Command {
  return ruleCommand('set', 'Create or replace the override for a key.')
    .argument(...keyArgument)
    .addOption(
      new Option('--limit <capacity/window>', 'another limit, such as 500/1m; repeat it for several bands')
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
  readonly window: string
}

/** Collects a repeatable `capacity/window` option. The server validates the window. */
function bands(text: string, previous: readonly LimitBand[] = []): readonly LimitBand[] {
  const [, capacity, window] = /^(\d{1,10})\/(\S+)$/.exec(text.trim()) ?? []
  if (capacity === undefined || window === undefined)
    throw new InvalidArgumentError('It must have the form capacity/window, such as 500/1m.')
  return [...previous, { capacity: Number(capacity), window }]
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
  const { status, body: stored } = await client.request('PUT', pathOf(ruleSet, rule, key), { body })
  if (json) printJson(stored)
  else print(`Override for ${key} ${status === 201 ? 'created' : 'replaced'}.`)
}

function deleteCommand(): Command {
  return ruleCommand('delete', 'Delete the override for a key, so that the rule applies unchanged.')
    .argument(...keyArgument)
    .addOption(serverOption())
    .option('--json', 'print { deleted }')
    .addHelpText('after', '\nExit status: 0 deleted, 1 no override for this key, 2 unknown rule, or failure.\n')
    .action(remove)
}

async function remove(ruleSet: string, rule: string, key: string, { json, ...target }: ServerOptions): Promise<void> {
  const { status, body } = await adminClient(target).request('DELETE', pathOf(ruleSet, rule, key), { expected: [404] })
  const isMissing = status === 404
  if (json) {
    if (isMissing) none(body)
    return printJson({ deleted: !isMissing })
  }
  if (isMissing) return none(body)
  print(`Override for ${key} deleted.`)
}

/** Also reports an unknown rule, which has the same status. */
function none(body: unknown): void {
  const { detail = 'No override exists for this key.' } = (body ?? {}) as { readonly detail?: string }
  process.exitCode = /override/i.test(detail) ? exitStatus.negative : exitStatus.failed
  process.stderr.write(`${detail}\n`)
}

const pathOf = (ruleSet: string, rule: string, key?: string): string => {
  const path = `/api/rule-sets/${encodeURIComponent(ruleSet)}/rules/${encodeURIComponent(rule)}/overrides`
  return key === undefined ? path : `${path}/${encodeURIComponent(key)}`
}
