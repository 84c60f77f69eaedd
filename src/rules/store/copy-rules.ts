import type { Edit, PageQuery, RuleSetDocument, RuleStore } from '../../core/rule-store.js'
import { parseRuleSets } from '../schema/schema.js'
import { setsOf } from './document-sets.js'
import { withoutStoreFields } from './rule-document.js'

export interface CopyOptions extends Pick<Edit, 'by'> {
  /** Whether sets of the target that the source does not have are removed; default false. */
  readonly removeOthers?: boolean
}

export interface CopyReport {
  readonly created: readonly string[]
  readonly changed: readonly string[]
  readonly unchanged: readonly string[]
  readonly removed: readonly string[]
}

/** As much of a store as is written to. */
export type CopyTarget = Pick<RuleStore, 'listRuleSets' | 'putRuleSet' | 'deleteRuleSet' | 'alone'>

/** A document with every rule set of a store, as a file would say it: without what only a store knows. */
export async function exportRules(store: Pick<RuleStore, 'listRuleSets'>): Promise<{ ruleSets: unknown[] }> {
  const ruleSets: unknown[] = []
  for await (const { version: _, rules, ...head } of allRuleSets(store))
    ruleSets.push({ ...head, rules: rules.map(withoutStoreFields) })
  return { ruleSets }
}

/**
 * Puts every rule set of a document into a store. All of it is checked first: with one mistake anywhere nothing is
 * written. Each set is then replaced as a whole, and only if nobody has changed it meanwhile. Where the store can see to it,
 * two imports follow each other.
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
  for (const ruleSet of setsOf(document)) {
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

/** From one store into another; versions and history are the target's own. */
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
