import type { Edit, PageQuery, RuleSetDocument, RuleStore } from '../../core/contracts/rule-store.js'
import { parseRuleSets } from '../schema/parse-rules.js'
import { ruleSetsIn } from './document-sets.js'
import { withoutStoreFields } from './rule-document.js'

/** Options of `copyRules` and `importRules`. */
export interface CopyOptions extends Pick<Edit, 'by'> {
  /** Removes rule sets from the target that are missing in the source. Default: false. */
  readonly removeOthers?: boolean
}

/** The result of a copy: the ids of the rule sets, by outcome. */
export interface CopyReport {
  /** Rule sets that the target did not have. */
  readonly created: readonly string[]
  /** Rule sets that the copy replaced. */
  readonly changed: readonly string[]
  /** Rule sets that were already equal. */
  readonly unchanged: readonly string[]
  /** Rule sets that the copy removed, with `removeOthers`. */
  readonly removed: readonly string[]
}

/** The methods of a rule store that an import uses. */
export type CopyTarget = Pick<RuleStore, 'listRuleSets' | 'putRuleSet' | 'deleteRuleSet' | 'alone'>

/** Returns a document with every rule set of a store, without versions and timestamps, as in a rules file. */
export async function exportRules(store: Pick<RuleStore, 'listRuleSets'>): Promise<{ ruleSets: unknown[] }> {
  const ruleSets: unknown[] = []
  for await (const { version: _, rules, ...head } of allRuleSets(store))
    ruleSets.push({ ...head, rules: rules.map(withoutStoreFields) })
  return { ruleSets }
}

/**
 * Writes every rule set of a document to a store. The whole document is validated first, so an invalid document writes
 * nothing. Each rule set is replaced as a whole, and a concurrent change of it fails the import with `FLUXGATE_RULES_CONFLICT`.
 * Imports run one at a time if the store has `alone`.
 */
export async function importRules(document: unknown, to: CopyTarget, options: CopyOptions): Promise<CopyReport> {
  parseRuleSets(document)
  const put = (signal?: AbortSignal): Promise<CopyReport> => putAll(document, to, options, signal)
  return to.alone === undefined ? put() : to.alone(put)
}

async function putAll(
  document: unknown,
  to: CopyTarget,
  { by, removeOthers = false }: CopyOptions,
  signal: AbortSignal | undefined,
): Promise<CopyReport> {
  const present = new Map<string, number>()
  for await (const { id, version } of allRuleSets(to)) present.set(id, version)
  const report = {
    created: [] as string[],
    changed: [] as string[],
    unchanged: [] as string[],
    removed: [] as string[],
  }
  for (const ruleSet of ruleSetsIn(document)) {
    signal?.throwIfAborted()
    const id = String(ruleSet.id)
    const before = present.get(id) ?? 0
    const { document: after } = await to.putRuleSet(ruleSet, { by, ifVersion: before })
    report[before === 0 ? 'created' : after.version === before ? 'unchanged' : 'changed'].push(id)
    present.delete(id)
  }
  for (const [id, ifVersion] of removeOthers ? present : []) {
    signal?.throwIfAborted()
    await to.deleteRuleSet(id, { by, ifVersion })
    report.removed.push(id)
  }
  return report
}

/** Copies all rule sets from one store to another. The target keeps its own versions and history. */
export const copyRules = async (from: RuleStore, to: RuleStore, options: CopyOptions): Promise<CopyReport> =>
  importRules(await exportRules(from), to, options)

async function* allRuleSets(store: Pick<RuleStore, 'listRuleSets'>): AsyncGenerator<RuleSetDocument> {
  let query: PageQuery | undefined = { limit: 100 }
  while (query !== undefined) {
    const { items, cursor }: Awaited<ReturnType<RuleStore['listRuleSets']>> = await store.listRuleSets(query)
    yield* items
    query = cursor === null ? undefined : { limit: 100, cursor }
  }
}
