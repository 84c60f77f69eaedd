import { createInterface } from 'node:readline/promises'
import { Command } from 'commander'
import { omitUndefined } from '../../core/omit-undefined.js'
import { exitStatus } from '../exit-status.js'
import { UsageError } from '../failure.js'
import { adminClient, serverOption } from '../options/server-option.js'
import { print, printJson } from '../output/output.js'
import type { ServerClient } from '../server-client.js'

interface ResetOptions {
  readonly server?: string
  readonly yes?: true
  readonly json?: true
}

const examples = `
Examples:
  $ fluxgate reset api login 203.0.113.7
      give one key full buckets under one rule
  $ fluxgate reset api login --yes
      give all keys full buckets under one rule
  $ fluxgate reset api --yes --json

A reset of a rule or a rule set affects all keys, so it asks first. Without a terminal it needs --yes.
Exit status: 0 reset, 1 not confirmed, 2 unknown rule set or rule, or failure.
`

export function resetCommand(): Command {
  return new Command('reset')
    .description('Reset the buckets of a key, a rule or a rule set on a running server.')
    .argument('<rule-set>', 'id of the rule set')
    .argument('[rule]', 'id of the rule; default: all rules of the set')
    .argument('[key]', 'the key, as in key of a decision; default: all keys')
    .addOption(serverOption())
    .option('--yes', 'do not ask before a rule or a rule set is reset')
    .option('--json', 'print { ruleSetId, rules, key }')
    .addHelpText('after', examples)
    .action(reset)
}

async function reset(
  ruleSetId: string,
  ruleId: string | undefined,
  key: string | undefined,
  options: ResetOptions,
): Promise<void> {
  const client = adminClient(options)
  const rules = ruleId === undefined ? await rulesOf(client, ruleSetId) : [ruleId]
  const what = describe(ruleSetId, ruleId, key)
  if (key === undefined && !options.yes && !(await isConfirmed(what))) {
    process.exitCode = exitStatus.negative
    return print('Nothing was reset.')
  }
  for (const id of rules) {
    const query = new URLSearchParams({ ruleSetId, ruleId: id, ...omitUndefined({ key }) })
    await client.request('DELETE', `/api/buckets?${query}`)
  }
  if (options.json) printJson({ ruleSetId, rules, key: key ?? null })
  else print(`Reset ${what} on ${client.url}.`)
}

function describe(ruleSetId: string, ruleId: string | undefined, key: string | undefined): string {
  const rules = ruleId === undefined ? 'all rules' : `rule ${ruleId}`
  return `${key === undefined ? 'all keys' : `key ${key}`} of ${rules} of rule set ${ruleSetId}`
}

async function rulesOf(client: ServerClient, ruleSetId: string): Promise<string[]> {
  const ids: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const query: string = new URLSearchParams({ limit: '1000', ...(cursor !== '' && { cursor }) }).toString()
    const { body } = await client.request('GET', `/api/rule-sets/${encodeURIComponent(ruleSetId)}/rules?${query}`)
    const page = body as { readonly rules: readonly { readonly id: string }[]; readonly cursor: string | null }
    ids.push(...page.rules.map(({ id }) => id))
    cursor = page.cursor
  }
  return ids
}

async function isConfirmed(what: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new UsageError(`This would reset ${what}. Add --yes to confirm.`)
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await lines.question(`Reset ${what}? [y/N] `)).trim())
  } finally {
    lines.close()
  }
}
