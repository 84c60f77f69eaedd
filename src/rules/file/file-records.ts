/**
 * What a rules file does not say itself: versions and times. They stand in a file beside it, together with the rules as they
 * were when they got them, so that an edit by hand is noticed and gets a version like any other.
 */
import { jsonText, parseJson } from '../../core/written-json.js'
import { planDeleteRuleSet, planPutRuleSet } from '../store/plan-edit.js'
import type { CheckedRuleSet } from '../store/rule-document.js'
import type { Kept, NumberedEntry } from '../store/rule-storage.js'

export type Records = ReadonlyMap<string, Kept>

export const nothing: Kept = { version: 0, removedVersion: 0, rules: [] }

export function recordsIn(text: string): Records {
  try {
    const records = parseJson(text) as { ruleSets: Record<string, Kept> }
    return new Map(Object.entries(records.ruleSets))
  } catch {
    // None yet, or removed by somebody: versions begin anew.
    return new Map()
  }
}

export const recordsText = (records: Records): string => `${jsonText({ ruleSets: Object.fromEntries(records) })}\n`

/** Whom the history names for what was not edited through the store. */
const outside = { by: 'outside' }

/** The records after everything that was edited by hand since they were written. */
export function reconciled(
  records: Records,
  ruleSets: readonly CheckedRuleSet[],
  at: string,
): { readonly records: Records; readonly entries: readonly NumberedEntry[] } {
  const entries: NumberedEntry[] = []
  const next = new Map(records)
  const take = (ruleSetId: string, plan: (planning: Parameters<typeof planPutRuleSet>[0]) => Change): void => {
    const change = plan({ ruleSetId, kept: records.get(ruleSetId) ?? nothing, edit: outside, at })
    if (change === undefined) return
    next.set(ruleSetId, change.after)
    entries.push({ setVersion: change.after.version, entry: change.entry })
  }
  const present = new Set(ruleSets.map(({ id }) => id))
  for (const ruleSet of ruleSets) take(ruleSet.id, (planning) => planPutRuleSet(planning, ruleSet))
  for (const id of records.keys()) if (!present.has(id)) take(id, planDeleteRuleSet)
  return { records: next, entries }
}

type Change = ReturnType<typeof planPutRuleSet>
