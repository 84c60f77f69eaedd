import type { RuleDocument } from '../../core/contracts/rule-store.js'
import { eachInSteps, filterInSteps, manyPerStep, mapInSteps, type Steps } from '../../core/scheduling/steps.js'
import { isSingleSet, ruleSetsIn } from '../store/document-sets.js'
import { storeFields } from '../store/rule-document.js'
import type { RuleSetChange, RuleSetState } from '../store/rule-storage.js'

type Fields = Readonly<Record<string, unknown>>

/**
 * Applies a change to a document. Unchanged parts stay the same objects, in the same order. A document that is a single rule
 * set becomes `{ ruleSets }` if it no longer has exactly that set.
 */
export function* applyToDocument(document: unknown, change: RuleSetChange): Steps<unknown> {
  const { ruleSetId, after } = change
  const sets = ruleSetsIn(document)
  const index = sets.findIndex(({ id }) => id === ruleSetId)
  const changed = after.head === undefined ? undefined : yield* applyToSet(sets[index] ?? {}, after, change)
  if (isSingleSet(document) && index === 0 && changed !== undefined) return changed
  const next =
    changed === undefined
      ? sets.filter((_, place) => place !== index)
      : index < 0
        ? [...sets, changed]
        : sets.map((set, place) => (place === index ? changed : set))
  return Array.isArray(document) ? next : { ruleSets: next }
}

function* applyToSet(set: Fields, { head, version }: RuleSetState, { put, remove }: RuleSetChange): Steps<Fields> {
  const present = (set.rules ?? []) as readonly RuleDocument[]
  const byId = new Map<string, RuleDocument>()
  yield* eachInSteps(put, (rule) => byId.set(rule.id, rule), manyPerStep)
  const removed = new Set(remove)
  const remaining = yield* filterInSteps(present, ({ id }) => !removed.has(id), manyPerStep)
  const rules = yield* mapInSteps(remaining, (rule): Fields => {
    const changed = byId.get(rule.id)
    byId.delete(rule.id)
    return changed === undefined ? rule : merged(rule, changed)
  })
  // The remaining rules are new.
  yield* eachInSteps(byId.values(), (rule) => rules.push(merged({}, rule)))
  return inOrderOf(set, { ...head, ...(Object.hasOwn(set, 'version') && { version }), rules })
}

/** Store fields are kept in another file. If the document has them too, they are updated. */
function merged(before: Fields, after: RuleDocument): Fields {
  const entries = Object.entries(after).filter(
    ([name]) => !storeFields.some((field) => field === name) || Object.hasOwn(before, name),
  )
  return inOrderOf(before, Object.fromEntries(entries))
}

/** Existing keys keep their order; new keys follow. */
function inOrderOf(before: Fields, after: Fields): Fields {
  const old = Object.keys(before).filter((name) => Object.hasOwn(after, name))
  const names = new Set([...old, ...Object.keys(after)])
  return Object.fromEntries([...names].map((name) => [name, after[name]]))
}
