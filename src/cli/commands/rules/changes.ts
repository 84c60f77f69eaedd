/** Compares two versions of a rule set, rule by rule and field by field. */

import type { RuleDocument, RuleSetDocument } from '../../../core/contracts/rule-store.js'
import { hasSameSourceText } from '../../../core/json/source-text.js'
import { isSameRule, withoutStoreFields } from '../../../rules/store/rule-document.js'

interface FieldChange {
  readonly field: string
  readonly before: unknown
  readonly after: unknown
}

interface RuleChange {
  readonly ruleId: string
  readonly action: 'added' | 'removed' | 'changed'
  readonly fields: readonly FieldChange[]
}

export interface SetChange {
  readonly ruleSetId: string
  readonly action: 'added' | 'removed' | 'changed'
  readonly fields: readonly FieldChange[]
  readonly rules: readonly RuleChange[]
}

export type WrittenSet = Pick<RuleSetDocument, 'id' | 'rules'> & Readonly<Record<string, unknown>>

/** The changes from `before` to `after`; undefined if nothing differs. */
export function changesOf(before: RuleSetDocument | undefined, after: WrittenSet | undefined): SetChange | undefined {
  const ruleSetId = String((after ?? before)?.id)
  const rules = ruleChanges(before?.rules ?? [], after?.rules ?? [])
  const fields = before === undefined || after === undefined ? [] : fieldChanges(headOf({ ...before }), headOf(after))
  const action = before === undefined ? 'added' : after === undefined ? 'removed' : 'changed'
  if (action === 'changed' && rules.length === 0 && fields.length === 0) return undefined
  return { ruleSetId, action, fields, rules }
}

function headOf({
  rules: _,
  version: __,
  ...head
}: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return head
}

function ruleChanges(before: readonly RuleDocument[], after: readonly RuleDocument[]): RuleChange[] {
  const known = new Map(before.map((rule) => [rule.id, withoutStoreFields(rule)]))
  const wanted = new Map(after.map((rule) => [rule.id, withoutStoreFields(rule)]))
  const changed = [...wanted].flatMap(([ruleId, rule]): RuleChange[] => {
    const old = known.get(ruleId)
    if (old === undefined) return [{ ruleId, action: 'added', fields: [] }]
    return isSameRule(old, rule) ? [] : [{ ruleId, action: 'changed', fields: fieldChanges(old, rule) }]
  })
  const removed = [...known.keys()].filter((ruleId) => !wanted.has(ruleId))
  return [...changed, ...removed.map((ruleId): RuleChange => ({ ruleId, action: 'removed', fields: [] }))]
}

function fieldChanges(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): FieldChange[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])]
  return names
    .filter((field) => !hasSameSourceText(before[field], after[field]))
    .map((field) => ({ field, before: before[field], after: after[field] }))
}
