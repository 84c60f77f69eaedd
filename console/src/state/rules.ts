/** Rule documents and the requests that change them. */
import { found, get, loadPages, pathOf, request } from './api.js'

export interface BandDocument {
  readonly label?: string
  readonly capacity?: number
  readonly refillTokens?: number
  readonly window?: string
  readonly windowMs?: number
  readonly windowSeconds?: number
  readonly refillSeconds?: number
  readonly calendar?: string
  readonly maxHold?: string | number
  readonly algorithm?: string
  readonly [name: string]: unknown
}

export interface Ban {
  readonly after?: number
  readonly within?: string | number
  readonly for?: string | number
  readonly factor?: number
  readonly max?: string | number
}

export interface RuleDocument {
  readonly id: string
  readonly name?: string
  readonly description?: string
  readonly enabled?: boolean
  readonly priority?: number
  readonly path?: string
  readonly method?: string | readonly string[]
  readonly when?: Readonly<Record<string, unknown>>
  readonly limitScope?: string
  readonly compositeKeyFields?: readonly string[]
  readonly keyField?: string
  readonly keyResolver?: string
  readonly algorithm?: string
  readonly bands?: readonly BandDocument[]
  readonly permits?: number
  readonly cost?: string
  readonly onLimitExceed?: string
  readonly mode?: string
  readonly enforcePercent?: number
  readonly overrides?: boolean
  readonly ban?: Ban
  readonly onMissingKey?: string
  readonly version?: number
  readonly updatedAt?: string
  readonly [name: string]: unknown
}

export interface RuleSetDocument {
  readonly id: string
  readonly description?: string
  readonly strategy?: string
  readonly version: number
  readonly rules: readonly RuleDocument[]
}

export interface Change {
  readonly at: string
  readonly by: string
  readonly action: string
  readonly ruleSetId: string
  readonly ruleId: string | null
  readonly version: number
  readonly before: unknown
  readonly after: unknown
}

export const ruleSetPath = (id: string): string => pathOf('api', 'rule-sets', id)
export const rulePath = (ruleSetId: string, ruleId: string): string =>
  pathOf('api', 'rule-sets', ruleSetId, 'rules', ruleId)

export const loadRuleSets = (signal?: AbortSignal): Promise<readonly RuleSetDocument[]> =>
  loadPages('/api/rule-sets', 'ruleSets', signal)

/** Removes the members that the store sets. */
export function withoutVersion<T extends object>(document: T): T {
  const { version, createdAt, updatedAt, ...rest } = document as Record<string, unknown>
  return rest as T
}

/** A rule set or candidate without the members that the store sets, for texts, comparisons and requests. */
export function plainSet(set: { readonly rules: readonly RuleDocument[] }): object {
  const { candidateOf, ...rest } = withoutVersion(set) as Record<string, unknown>
  return { ...rest, rules: set.rules.map(withoutVersion) }
}

/** The edited rule, with the members of the original where they are equal, so that these keep their exact text. */
export function withOriginals<T extends object>(original: T | undefined, edited: T): T {
  if (original === undefined) return edited
  const before = original as Record<string, unknown>
  const members = Object.entries(edited).map(([name, value]) => [
    name,
    isSame(before[name], value) ? before[name] : value,
  ])
  return Object.fromEntries(members) as T
}

/** Like `withOriginals`, for a rule set. */
export function setWithOriginals(original: RuleSetDocument, edited: object): object {
  const { rules } = edited as { readonly rules?: unknown }
  if (!Array.isArray(rules)) return edited
  const known = new Map(original.rules.map((rule) => [rule.id, rule]))
  return {
    ...edited,
    rules: (rules as readonly RuleDocument[]).map((rule) => withOriginals(known.get(rule?.id), rule)),
  }
}

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b)

/**
 * The JSON merge patch from one document to the other. Only changed members are sent, so that members which the page does not
 * show, and the exact text of `attributes`, stay as they are.
 */
export function mergePatchOf(before: object, after: object): Record<string, unknown> {
  const old = before as Record<string, unknown>
  const fresh = after as Record<string, unknown>
  const patch: Record<string, unknown> = {}
  for (const name of Object.keys(old)) if (fresh[name] === undefined) patch[name] = null
  for (const [name, value] of Object.entries(fresh)) {
    const previous = old[name]
    if (value === undefined || isSame(previous, value)) continue
    patch[name] = isPlain(previous) && isPlain(value) ? mergePatchOf(previous, value) : value
  }
  return patch
}

const isPlain = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const ifMatch = (version: number | undefined): Record<string, string> =>
  version === undefined ? {} : { 'If-Match': `"${version}"` }

export async function patchRule(ruleSetId: string, base: RuleDocument, patch: object): Promise<RuleDocument> {
  const headers = ifMatch(base.version)
  return (await request<RuleDocument>('PATCH', rulePath(ruleSetId, base.id), { body: patch, headers })).body
}

export async function createRule(ruleSetId: string, rule: RuleDocument): Promise<RuleDocument> {
  return (await request<RuleDocument>('POST', `${ruleSetPath(ruleSetId)}/rules`, { body: withoutVersion(rule) })).body
}

/** Creates or replaces the rule, whatever its current version is. */
export async function putRule(ruleSetId: string, rule: RuleDocument): Promise<void> {
  await request('PUT', rulePath(ruleSetId, rule.id), { body: withoutVersion(rule) })
}

export async function deleteRule(ruleSetId: string, rule: RuleDocument): Promise<void> {
  await request('DELETE', rulePath(ruleSetId, rule.id), { headers: ifMatch(rule.version) })
}

/** The current version of a rule, or undefined if it was deleted. */
export const currentRule = (ruleSetId: string, ruleId: string): Promise<RuleDocument | undefined> =>
  found(get<RuleDocument>(rulePath(ruleSetId, ruleId)))

/** Replaces a rule set; with `expectedVersion`, only if it still has this version. */
export async function putSet(set: RuleSetDocument, expectedVersion?: number): Promise<void> {
  await request('PUT', ruleSetPath(set.id), { body: plainSet(set), headers: ifMatch(expectedVersion) })
}
