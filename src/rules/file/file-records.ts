/**
 * What a rules file does not say itself: versions and times. They stand in a file beside it, together with the rules as they
 * were when they got them, so that an edit by hand is noticed and gets a version like any other.
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
    // None yet, or removed by somebody: versions begin anew.
    return new Map()
  }
}

export const recordsChunks = (records: Records): Steps<Buffer[]> =>
  jsonChunksSteps({ ruleSets: Object.fromEntries(records) })

/** Whom the history names for what was not edited through the store. */
const outside = { by: 'outside' }

/** The records after everything that was edited by hand since they were written. */
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
