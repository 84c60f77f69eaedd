import { Command, Option } from 'commander'
import type { ActiveBan } from '../../../core/contracts/ban-store.js'
import { omitUndefined } from '../../../core/omit-undefined.js'
import { exitStatus } from '../../exit-status.js'
import { wholeNumber } from '../../options/option-values.js'
import { adminClient, serverOption } from '../../options/server-option.js'
import { print, printJson } from '../../output/output.js'
import { renderTable } from '../../output/table.js'

interface ServerOptions {
  readonly server?: string
  readonly json?: true
}

export function bansCommand(): Command {
  return new Command('bans')
    .description('Show and change the bans of a rule on a running server.')
    .addCommand(listCommand())
    .addCommand(getCommand())
    .addCommand(setCommand())
    .addCommand(liftCommand())
}

/** A subcommand for one rule. The arguments come first, so that they are the same for all of them. */
const ruleCommand = (name: string, description: string): Command =>
  new Command(name)
    .description(description)
    .argument('<rule-set>', 'id of the rule set')
    .argument('<rule>', 'id of the rule, which needs a ban')

const keyArgument = ['<key>', 'the key; for rules that count by IP, an address'] as const

const listExamples = `
Examples:
  $ fluxgate bans list api login
  $ fluxgate bans list api login --prefix 203. --json

Exit status: 0 success, 2 unknown rule, or failure.
`

function listCommand(): Command {
  return ruleCommand('list', 'List the bans of a rule that are in force, sorted by key.')
    .addOption(serverOption())
    .option('--prefix <text>', 'list only keys with this prefix')
    .addOption(new Option('--limit <n>', 'number of bans (default: 100)').argParser(wholeNumber(1, 1_000_000)))
    .option('--json', 'print { bans: [{ key, until, … }], more }')
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
  const bans: ActiveBan[] = []
  let cursor: string | null | undefined
  while (cursor !== null && bans.length < limit) {
    const size = String(Math.min(pageSize, limit - bans.length))
    const query = new URLSearchParams({ limit: size, ...omitUndefined({ prefix, cursor }) })
    const { body } = await client.request('GET', `${pathOf(ruleSet, rule)}?${query}`)
    const page = body as { readonly bans: readonly ActiveBan[]; readonly cursor: string | null }
    bans.push(...page.bans)
    cursor = page.cursor
  }
  const more = cursor !== null
  if (json) return printJson({ bans, more })
  if (bans.length === 0) return print('No bans.')
  const titles = ['key', 'until', 'bans'].map((title) => ({ title, align: 'left' as const }))
  const rows = bans.map(({ key, until, count }) => [key, until, String(count)])
  for (const line of renderTable(titles, rows)) print(line)
  if (more) print(`… more than ${limit}; use --limit or --prefix.`)
}

function getCommand(): Command {
  return ruleCommand('get', 'Print the ban of a key.')
    .argument(...keyArgument)
    .addOption(serverOption())
    .option('--json', 'print compact JSON on one line')
    .addHelpText('after', '\nExit status: 0 success, 1 the key is not banned, 2 unknown rule, or failure.\n')
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
  $ fluxgate bans set api login 203.0.113.7
  $ fluxgate bans set api login 203.0.113.7 --for 1h
  $ fluxgate bans set api login 203.0.113.7 --until 2027-01-01T00:00:00Z

Replaces an existing ban of the key. Exit status: 0 success, 2 invalid ban, unknown rule, or failure.
`

function setCommand(): Command {
  return ruleCommand('set', 'Ban a key by hand.')
    .argument(...keyArgument)
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
  const { body: ban } = await adminClient(options).request('PUT', pathOf(ruleSet, rule, key), { body })
  if (json) printJson(ban)
  else print(`${(ban as ActiveBan).key} is banned until ${(ban as ActiveBan).until}.`)
}

function liftCommand(): Command {
  return ruleCommand('lift', 'Lift the ban of a key, and clear its escalation.')
    .argument(...keyArgument)
    .addOption(serverOption())
    .option('--json', 'print { lifted }')
    .addHelpText('after', '\nExit status: 0 lifted, 1 the key is not banned, 2 unknown rule, or failure.\n')
    .action(lift)
}

async function lift(ruleSet: string, rule: string, key: string, { json, ...target }: ServerOptions): Promise<void> {
  const { status, body } = await adminClient(target).request('DELETE', pathOf(ruleSet, rule, key), { expected: [404] })
  const isMissing = status === 404
  if (json) {
    if (isMissing) none(body)
    return printJson({ lifted: !isMissing })
  }
  if (isMissing) return none(body)
  print(`The ban of ${key} is lifted.`)
}

/** Also reports an unknown rule, which has the same status. */
function none(body: unknown): void {
  const { detail = 'The key is not banned.' } = (body ?? {}) as { readonly detail?: string }
  process.exitCode = /banned/i.test(detail) ? exitStatus.negative : exitStatus.failed
  process.stderr.write(`${detail}\n`)
}

const pathOf = (ruleSet: string, rule: string, key?: string): string => {
  const path = `/api/rule-sets/${encodeURIComponent(ruleSet)}/rules/${encodeURIComponent(rule)}/bans`
  return key === undefined ? path : `${path}/${encodeURIComponent(key)}`
}
