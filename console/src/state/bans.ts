/** Bans of keys by rules. A rule has bans only if it has `ban`. */
import type { ActiveBan } from '../../../src/core/contracts/ban-store.js'
import { get, request } from './api.js'
import { type RuleDocument, rulePath } from './rules.js'

export type { ActiveBan }

export interface BannedKey extends ActiveBan {
  readonly ruleSetId: string
  readonly ruleId: string
}

/** A rule, and the rule set that it is in. */
export interface PlacedRule {
  readonly ruleSetId: string
  readonly rule: RuleDocument
}

const bansPath = (ruleSetId: string, ruleId: string): string => `${rulePath(ruleSetId, ruleId)}/bans`
const banPath = (ruleSetId: string, ruleId: string, key: string): string =>
  `${bansPath(ruleSetId, ruleId)}/${encodeURIComponent(key)}`

const firstBans = ({ ruleSetId, rule }: PlacedRule, query: string, signal?: AbortSignal) =>
  get<{ bans: readonly ActiveBan[] }>(`${bansPath(ruleSetId, rule.id)}?${query}`, signal)

/** The ban of a key. It is taken from the list of bans, because browsers log every 404 as an error. */
export async function loadBan(rule: PlacedRule, key: string, signal?: AbortSignal): Promise<ActiveBan | undefined> {
  if (rule.rule.ban === undefined) return undefined
  const { bans } = await firstBans(rule, `limit=1&prefix=${encodeURIComponent(key)}`, signal)
  return bans.find((ban) => ban.key === key)
}

/** The first bans of each rule. */
export async function loadBans(rules: readonly PlacedRule[], signal?: AbortSignal): Promise<readonly BannedKey[]> {
  const lists = await Promise.all(
    rules.map(async (placed) => {
      const { bans } = await firstBans(placed, 'limit=50', signal)
      return bans.map((ban) => ({ ...ban, ruleSetId: placed.ruleSetId, ruleId: placed.rule.id }))
    }),
  )
  return lists.flat()
}

export async function setBan(ruleSetId: string, ruleId: string, key: string, body: object): Promise<void> {
  await request('PUT', banPath(ruleSetId, ruleId, key), { body })
}

export async function liftBan(ruleSetId: string, ruleId: string, key: string): Promise<void> {
  await request('DELETE', banPath(ruleSetId, ruleId, key))
}
