/**
 * Versions and timestamps of the rules in a rules file. They are kept in a second file, with a copy of each rule at that
 * version, so that manual edits are detected and get a version too.
 */

import { jsonChunksSteps } from '../../core/json/written-json.js'
import type { Steps } from '../../core/scheduling/steps.js'
import { jsonSteps } from '../document/json-text.js'
import { decodeSteps } from '../document/rules-file.js'
import { planDeleteRuleSet, planPutRuleSet } from '../store/plan-edit.js'
import type { CheckedRuleSet } from '../store/rule-document.js'
import type { Kept, NumberedEntry } from '../store/rule-storage.js'

export type Records = ReadonlyMap<string, Kept>

export const nothing: Kept = { version: 0, removedVersion: 0, rules: [] }

export function* recordsIn(bytes: Buffer): Steps<Records> {
  const read = yield* jsonSteps(yield* decodeSteps(bytes))
  try {
    const { ruleSets } = ('value' in read ? read.value : {}) as { ruleSets: Record<string, Kept> }
    return new Map(Object.entries(ruleSets))
  } catch {
    // The file does not exist yet or was removed: versions start again.
    return new Map()
  }
}

export const recordsChunks = (records: Records): Steps<Buffer[]> =>
  jsonChunksSteps({ ruleSets: Object.fromEntries(records) })

/** The editor of manual edits in the history. */
const outside = { by: 'outside' }

/** Updates the records for all manual edits since they were written. */
export function* reconciled(
  records: Records,
  ruleSets: readonly CheckedRuleSet[],
  at: string,
): Steps<{ readonly records: Records; readonly entries: readonly NumberedEntry[] }> {
  const entries: NumberedEntry[] = []
  const next = new Map(records)
  function* take(ruleSetId: string, plan: (planning: Parameters<typeof planPutRuleSet>[0]) => Change): Steps<void> {
    const change = yield* plan({ ruleSetId, kept: records.get(ruleSetId) ?? nothing, edit: outside, at })
    if (change === undefined) return
    next.set(ruleSetId, change.after)
    entries.push({ setVersion: change.after.version, entry: change.entry })
  }
  const present = new Set(ruleSets.map(({ id }) => id))
  for (const ruleSet of ruleSets) yield* take(ruleSet.id, (planning) => planPutRuleSet(planning, ruleSet))
  for (const id of records.keys()) if (!present.has(id)) yield* take(id, planDeleteRuleSet)
  return { records: next, entries }
}

type Change = ReturnType<typeof planPutRuleSet>
