/** The rule store that the `rules` commands use: a file, the configured store, or a FluxGate server. */
import { userInfo } from 'node:os'
import { type Command, Option } from 'commander'
import { ruleStoreSettings } from '../../../config/rules.js'
import type { RuleSetDocument, RuleStore } from '../../../core/contracts/rule-store.js'
import { fileRuleStore } from '../../../rules/file/file-rule-store.js'
import { openRuleStore } from '../../../rules/open-rule-store.js'
import { maxBodyBytes } from '../../../server/request/read-body.js'
import { UsageError } from '../../failure.js'
import { readConfig } from '../../options/read-config.js'
import { adminClient } from '../../options/server-option.js'
import { displayPath } from '../../output/output.js'
import type { ServerClient } from '../../server-client.js'

export interface TargetOptions {
  readonly rules?: string
  readonly config?: string
  readonly server?: string
}

export interface RulesTarget
  extends Pick<RuleStore, 'source' | 'listRuleSets' | 'getRuleSet' | 'putRuleSet' | 'deleteRuleSet' | 'close'> {
  /** The maximum size of a rule set in bytes of JSON; undefined if unlimited. */
  readonly maxSetBytes?: number
}

/** Adds the options that select the rule store. */
export const withTarget = (command: Command): Command =>
  command
    .addOption(new Option('--rules <file>', 'use this rules file').conflicts(['config', 'server']))
    .addOption(
      new Option(
        '--config <file>',
        'use the rule store of this configuration (default: ./fluxgate.yaml, or ./rules.yaml without one)',
      ).conflicts('server'),
    )
    .option('--server <url>', 'use a FluxGate server; token from FLUXGATE_ADMIN_TOKEN')

async function openTarget(options: TargetOptions): Promise<RulesTarget> {
  const { rules, server } = options
  if (server !== undefined) return remoteRules(adminClient({ server }))
  if (rules !== undefined) return fileRuleStore(rules)
  // Load the configuration even without a file: environment variables may select the rule store, as they do for `serve`.
  const settings = await readConfig(options)
  const { type, path } = settings.rules
  return type === 'file' ? fileRuleStore(displayPath(path)) : openRuleStore(ruleStoreSettings(settings))
}

/** Opens the target, runs `use`, and closes the target in any case. */
export async function onTarget<T>(options: TargetOptions, use: (target: RulesTarget) => Promise<T>): Promise<T> {
  const target = await openTarget(options)
  try {
    return await use(target)
  } finally {
    await target.close()
  }
}

/** The editor name for the edit history. */
export const editor = (): string => {
  try {
    return `${userInfo().username} (command line)`
  } catch {
    return 'command line'
  }
}

/** Rules on a FluxGate server. The server derives the editor for its history from the token. */
function remoteRules(client: ServerClient): RulesTarget {
  const pathOf = (id: string): string => `/api/rule-sets/${encodeURIComponent(id)}`
  return {
    source: client.url,
    maxSetBytes: maxBodyBytes,
    async listRuleSets({ limit, cursor }) {
      const query = new URLSearchParams({ limit: String(limit), ...(cursor !== undefined && { cursor }) })
      const { body } = await client.request('GET', `/api/rule-sets?${query}`)
      const { ruleSets, cursor: next } = body as { ruleSets: RuleSetDocument[]; cursor: string | null }
      return { items: ruleSets, cursor: next }
    },
    async getRuleSet(id) {
      const { status, body } = await client.request('GET', pathOf(id), { expected: [404] })
      return status === 404 ? undefined : (body as RuleSetDocument)
    },
    async putRuleSet(document, { ifVersion }) {
      const { id } = document as { readonly id?: unknown }
      if (typeof id !== 'string') throw new UsageError('The rule set has no id. Add an id field to the document.')
      const { status, body } = await client.request('PUT', pathOf(id), {
        body: document,
        headers: condition(ifVersion),
      })
      return { document: body as RuleSetDocument, created: status === 201 }
    },
    async deleteRuleSet(id, { ifVersion }) {
      const { status } = await client.request('DELETE', pathOf(id), { headers: condition(ifVersion), expected: [404] })
      return status !== 404
    },
    close: async () => {},
  }
}

function condition(ifVersion: number | undefined): Record<string, string> {
  if (ifVersion === undefined) return {}
  return ifVersion === 0 ? { 'If-None-Match': '*' } : { 'If-Match': `"${ifVersion}"` }
}
