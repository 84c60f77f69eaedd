/** Commands for the entries that a running server keeps for single keys of a rule: its overrides or its bans. */
import { Command, Option } from 'commander'
import { omitUndefined } from '../core/omit-undefined.js'
import { exitStatus } from './exit-status.js'
import { wholeNumber } from './options/option-values.js'
import { adminClient, serverOption } from './options/server-option.js'
import { print, printJson } from './output/output.js'
import { left, renderTable } from './output/table.js'

export interface ServerOptions {
  readonly server?: string
  readonly json?: true
}

interface ListOptions extends ServerOptions {
  readonly prefix?: string
  readonly limit?: number
}

/** One kind of entries. */
export interface RuleEntries<Entry> {
  /** The name of the entries in URLs, responses and messages. */
  readonly name: 'bans' | 'overrides'
  /** The rules that can have entries, for the help. */
  readonly rule: string
  /** The keys that can have entries, for the help. */
  readonly key: string
  /** The message for a key without an entry. */
  readonly missing: string
  /** Matches the server's message about a key without an entry, but none about an unknown rule, which has the same status. */
  readonly isMissing: RegExp
  readonly columns: readonly string[]
  rowOf(entry: Entry): string[]
}

const pageSize = 1_000

/** A subcommand for one rule. The arguments come first, so that they are the same for all subcommands. */
const ruleCommand = ({ rule }: Pick<RuleEntries<never>, 'rule'>, name: string, description: string): Command =>
  new Command(name)
    .description(description)
    .argument('<rule-set>', 'id of the rule set')
    .argument('<rule>', `id of the rule, which needs ${rule}`)

/** A subcommand for one key of a rule. */
export const keyCommand = (entries: Pick<RuleEntries<never>, 'rule' | 'key'>, name: string, description: string) =>
  ruleCommand(entries, name, description).argument('<key>', `the key; for rules that count by IP, ${entries.key}`)

/** The subcommand that lists the entries of a rule. */
export function listCommand<Entry>(entries: RuleEntries<Entry>, description: string, fields: string): Command {
  return ruleCommand(entries, 'list', description)
    .addOption(serverOption())
    .option('--prefix <text>', 'list only keys with this prefix')
    .addOption(
      new Option('--limit <n>', `number of ${entries.name} (default: 100)`).argParser(wholeNumber(1, 1_000_000)),
    )
    .option('--json', `print { ${entries.name}: [{ ${fields}, … }], more }`)
    .action((ruleSet: string, rule: string, options: ListOptions) => list(entries, ruleSet, rule, options))
}

async function list<Entry>(
  { name, columns, rowOf }: RuleEntries<Entry>,
  ruleSet: string,
  rule: string,
  { limit = 100, prefix, json, ...target }: ListOptions,
): Promise<void> {
  const client = adminClient(target)
  const found: Entry[] = []
  let cursor: string | null | undefined
  while (cursor !== null && found.length < limit) {
    const size = String(Math.min(pageSize, limit - found.length))
    const query = new URLSearchParams({ limit: size, ...omitUndefined({ prefix, cursor }) })
    const { body } = await client.request('GET', `${entryPath(name, ruleSet, rule)}?${query}`)
    const page = body as { readonly [Name in typeof name]: readonly Entry[] } & { readonly cursor: string | null }
    found.push(...page[name])
    cursor = page.cursor
  }
  const more = cursor !== null
  if (json) return printJson({ [name]: found, more })
  if (found.length === 0) return print(`No ${name}.`)
  for (const line of renderTable(columns.map(left), found.map(rowOf))) print(line)
  if (more) print(`… more than ${limit}; use --limit or --prefix.`)
}

/** The subcommand that prints the entry of a key. */
export const getCommand = <Entry>(entries: RuleEntries<Entry>, description: string): Command =>
  keyCommand(entries, 'get', description)
    .addOption(serverOption())
    .option('--json', 'print compact JSON on one line')
    .action(async (ruleSet: string, rule: string, key: string, { json, ...target }: ServerOptions) => {
      const path = entryPath(entries.name, ruleSet, rule, key)
      const found = await adminClient(target).request('GET', path, { expected: [404] })
      if (found.status === 404) return reportMissing(entries, found.body)
      if (json) print(JSON.stringify(found.body))
      else printJson(found.body)
    })

/** Deletes the entry of a key, and prints `done` or, as JSON, whether it existed. */
export async function deleteEntry<Entry>(
  entries: RuleEntries<Entry>,
  [ruleSet, rule, key]: readonly [ruleSet: string, rule: string, key: string],
  { json, ...target }: ServerOptions,
  field: 'deleted' | 'lifted',
  done: string,
): Promise<void> {
  const path = entryPath(entries.name, ruleSet, rule, key)
  const { status, body } = await adminClient(target).request('DELETE', path, { expected: [404] })
  const isMissing = status === 404
  if (isMissing) reportMissing(entries, body)
  if (json) printJson({ [field]: !isMissing })
  else if (!isMissing) print(done)
}

function reportMissing<Entry>({ missing, isMissing }: RuleEntries<Entry>, body: unknown): void {
  const { detail = missing } = (body ?? {}) as { readonly detail?: string }
  process.exitCode = isMissing.test(detail) ? exitStatus.negative : exitStatus.failed
  process.stderr.write(`${detail}\n`)
}

/** The path of the entries of a rule, or of the entry of one key. */
export function entryPath(name: RuleEntries<never>['name'], ruleSet: string, rule: string, key?: string): string {
  const path = `/api/rule-sets/${encodeURIComponent(ruleSet)}/rules/${encodeURIComponent(rule)}/${name}`
  return key === undefined ? path : `${path}/${encodeURIComponent(key)}`
}
