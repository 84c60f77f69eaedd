/** Where the `rules` commands read and write: a file, what a configuration says, or a server. */
import { userInfo } from 'node:os'
import { type Command, Option } from 'commander'
import { loadConfig } from '../../../config/config.js'
import { ruleStoreSettings } from '../../../config/rules.js'
import type { RuleSetDocument, RuleStore } from '../../../core/rule-store.js'
import { fileRuleStore } from '../../../rules/file/file-rule-store.js'
import { openRuleStore } from '../../../rules/open-rule-store.js'
import { maxBodyBytes } from '../../../server/request/read-body.js'
import { UsageError } from '../../failure.js'
import { shownPath } from '../../output/shown-path.js'
import { type ServerClient, serverClient } from '../../server-client.js'

export interface TargetOptions {
  readonly rules?: string
  readonly config?: string
  readonly server?: string
}

export interface RulesTarget
  extends Pick<RuleStore, 'source' | 'listRuleSets' | 'getRuleSet' | 'putRuleSet' | 'deleteRuleSet' | 'close'> {
  /** How many bytes of JSON a rule set may have there; left out if that is not bounded. */
  readonly maxSetBytes?: number
}

/** The options of every command that has one. */
export const withTarget = (command: Command): Command =>
  command
    .addOption(new Option('--rules <file>', 'a rules file').conflicts(['config', 'server']))
    .addOption(
      new Option(
        '--config <file>',
        'what a fluxgate.yaml says; ./fluxgate.yaml if there is one, or else ./rules.yaml',
      ).conflicts('server'),
    )
    .option('--server <url>', 'a FluxGate server; its token is in FLUXGATE_ADMIN_TOKEN')

async function openTarget({ rules, config, server }: TargetOptions): Promise<RulesTarget> {
  if (server !== undefined) return remoteRules(serverClient(server, ['FLUXGATE_ADMIN_TOKEN']))
  if (rules !== undefined) return fileRuleStore(rules)
  // Also where there is no file: the environment may name the place, as it does for a server that runs here.
  const settings = await loadConfig({ path: config, env: process.env, cwd: process.cwd() })
  const { type, path } = settings.rules
  return type === 'file' ? fileRuleStore(shownPath(path)) : openRuleStore(ruleStoreSettings(settings))
}

/** Uses a target and closes it. */
export async function onTarget<T>(options: TargetOptions, use: (target: RulesTarget) => Promise<T>): Promise<T> {
  const target = await openTarget(options)
  try {
    return await use(target)
  } finally {
    await target.close()
  }
}

/** Who edits, for the history. */
export const editor = (): string => {
  try {
    return `${userInfo().username} (command line)`
  } catch {
    return 'command line'
  }
}

/** The same over HTTP. The server knows by the token who it is that edits. */
function remoteRules(client: ServerClient): RulesTarget {
  const pathOf = (id: string): string => `/api/rule-sets/${encodeURIComponent(id)}`
  return {
    source: client.url,
    maxSetBytes: maxBodyBytes,
    async listRuleSets({ limit, cursor }) {
      const query = new URLSearchParams({ limit: String(limit), ...(cursor !== undefined && { cursor }) })
      const { body } = await client.ask('GET', `/api/rule-sets?${query}`)
      const { ruleSets, cursor: next } = body as { ruleSets: RuleSetDocument[]; cursor: string | null }
      return { items: ruleSets, cursor: next }
    },
    async getRuleSet(id) {
      const { status, body } = await client.ask('GET', pathOf(id), { expected: [404] })
      return status === 404 ? undefined : (body as RuleSetDocument)
    },
    async putRuleSet(document, { ifVersion }) {
      const { id } = document as { readonly id?: unknown }
      if (typeof id !== 'string') throw new UsageError('A rule set needs an id.')
      const { status, body } = await client.ask('PUT', pathOf(id), { body: document, headers: condition(ifVersion) })
      return { document: body as RuleSetDocument, created: status === 201 }
    },
    async deleteRuleSet(id, { ifVersion }) {
      const { status } = await client.ask('DELETE', pathOf(id), { headers: condition(ifVersion), expected: [404] })
      return status !== 404
    },
    close: async () => {},
  }
}

function condition(ifVersion: number | undefined): Record<string, string> {
  if (ifVersion === undefined) return {}
  return ifVersion === 0 ? { 'If-None-Match': '*' } : { 'If-Match': `"${ifVersion}"` }
}
