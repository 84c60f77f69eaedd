/**
 * Versions and timestamps of the rules in a rules file. They are kept in a second file, with a copy of each rule at that
 * version, so that manual edits are detected and get a version too.
 */

import { jsonChunksSteps } from '../../core/json/json-steps.js'
import type { Steps } from '../../core/scheduling/steps.js'
import { parseJsonSteps } from '../document/json-text.js'
import { decodeSteps } from '../document/rules-file.js'
import { type EditContext, planDeleteRuleSet, planPutRuleSet } from '../store/plan-edit.js'
import type { ValidatedRuleSet } from '../store/rule-document.js'
import type { NumberedEntry, RuleSetChange, RuleSetState } from '../store/rule-storage.js'

export type VersionRecords = ReadonlyMap<string, RuleSetState>

export const noRuleSet: RuleSetState = { version: 0, removedVersion: 0, rules: [] }

export function* parseRecords(bytes: Buffer): Steps<VersionRecords> {
  const read = yield* parseJsonSteps(yield* decodeSteps(bytes))
  try {
    const { ruleSets } = ('value' in read ? read.value : {}) as { ruleSets: Record<string, RuleSetState> }
    return new Map(Object.entries(ruleSets))
  } catch {
    // The file does not exist yet or was removed: versions start again.
    return new Map()
  }
}

export const encodeRecords = (records: VersionRecords): Steps<Buffer[]> =>
  jsonChunksSteps({ ruleSets: Object.fromEntries(records) })

/** The editor name of manual edits in the history. */
const manualEdit = { by: 'outside' }

/** Updates the records for all manual edits since they were written. */
export function* recordManualEdits(
  records: VersionRecords,
  ruleSets: readonly ValidatedRuleSet[],
  at: string,
): Steps<{ readonly records: VersionRecords; readonly entries: readonly NumberedEntry[] }> {
  const entries: NumberedEntry[] = []
  const next = new Map(records)
  function* record(ruleSetId: string, plan: (context: EditContext) => Steps<RuleSetChange | undefined>): Steps<void> {
    const change = yield* plan({ ruleSetId, stored: records.get(ruleSetId) ?? noRuleSet, edit: manualEdit, at })
    if (change === undefined) return
    next.set(ruleSetId, change.after)
    entries.push({ setVersion: change.after.version, entry: change.entry })
  }
  const present = new Set(ruleSets.map(({ id }) => id))
  for (const ruleSet of ruleSets) yield* record(ruleSet.id, (context) => planPutRuleSet(context, ruleSet))
  for (const id of records.keys()) if (!present.has(id)) yield* record(id, planDeleteRuleSet)
  return { records: next, entries }
}
