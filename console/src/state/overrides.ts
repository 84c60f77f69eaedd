/** The override of a key under a rule. */
import { get } from './api.js'
import type { PlacedRule } from './bans.js'
import { type BandDocument, rulePath } from './rules.js'

export interface Override {
  readonly key: string
  readonly action: string
  readonly bands?: readonly BandDocument[]
  readonly expiresAt?: string
  readonly note?: string
}

const overridesPath = ({ ruleSetId, rule }: PlacedRule): string => `${rulePath(ruleSetId, rule.id)}/overrides`

export const overridePath = (rule: PlacedRule, key: string): string =>
  `${overridesPath(rule)}/${encodeURIComponent(key)}`

/** The override of a key. It is taken from the list of overrides, because browsers log every 404 as an error. */
export async function loadOverride(rule: PlacedRule, key: string, signal?: AbortSignal): Promise<Override | undefined> {
  const query = `key=${encodeURIComponent(key)}`
  const { overrides } = await get<{ overrides: readonly Override[] }>(`${overridesPath(rule)}?${query}`, signal)
  return overrides[0]
}
