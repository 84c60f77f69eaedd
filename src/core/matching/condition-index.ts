import type { RequestContext } from '../request-context.js'
import type { Condition } from '../rule.js'
import type { Steps } from '../scheduling/steps.js'
import { readerOf } from './condition.js'
import { type ReadField, textOf } from './request-field.js'

interface Conditional {
  readonly when: readonly Condition[]
}

/** Entries by the value that one field of the request must have. */
export interface FieldIndex<Entry> {
  readonly read: ReadField
  readonly byValue: ReadonlyMap<string, Entry>
}

export interface ConditionIndex<Item> {
  /** Items that cannot be indexed. */
  readonly others: readonly Item[]
  /** Indexed items, without the condition that the lookup has already checked. */
  readonly fieldIndexes: readonly FieldIndex<readonly Item[]>[]
}

/**
 * One path may have a rule per tenant or plan, which differ only in `when`. Such rules are looked up by the value in the
 * request instead of evaluated one by one. Each item is indexed by its condition whose field has the most distinct values.
 */
export function* indexConditions<Item extends Conditional>(items: readonly Item[]): Steps<ConditionIndex<Item>> {
  // For a few items, evaluating all of them is as fast as a lookup.
  if (items.length <= 8) return { others: items, fieldIndexes: [] }
  const valuesByField = yield* collectValues(items)
  const others: Item[] = []
  const byField = new Map<string, Map<string, Item[]>>()
  for (const item of items) {
    yield
    const best = mostSelective(item.when, valuesByField)
    if (!best) others.push(item)
    else addToIndex(byField, best, { ...item, when: item.when.filter((condition) => condition !== best) })
  }
  return {
    others,
    fieldIndexes: Array.from(byField, ([field, byValue]) => ({ read: readerOf(field) as ReadField, byValue })),
  }
}

/** Adds the entry of the request's value, or the entry of each value if the request has a list. */
export function lookUp<Entry>(index: FieldIndex<Entry>, context: RequestContext, found: Entry[]): void {
  const value = index.read(context, undefined)
  if (Array.isArray(value)) for (const one of value) addEntry(index, one, found)
  else addEntry(index, value, found)
}

function addEntry<Entry>({ byValue }: FieldIndex<Entry>, value: unknown, found: Entry[]): void {
  const text = textOf(value)
  const entry = text === undefined ? undefined : byValue.get(text)
  if (entry !== undefined) found.push(entry)
}

/** Collects the fields that can be indexed: those that are compared as exact text and do not depend on the path pattern. */
function* collectValues(items: readonly Conditional[]): Steps<Map<string, Set<string>>> {
  const valuesByField = new Map<string, Set<string>>()
  for (const { when } of items) {
    yield
    for (const { field, values } of when) {
      if (field === 'method' || field.startsWith('path.') || !readerOf(field)) continue
      const known = valuesByField.get(field) ?? new Set()
      for (const value of values) known.add(value)
      valuesByField.set(field, known)
    }
  }
  return valuesByField
}

function mostSelective(when: readonly Condition[], valuesByField: Map<string, Set<string>>): Condition | undefined {
  const count = ({ field }: Condition): number => valuesByField.get(field)?.size ?? 0
  return when.filter(({ field }) => valuesByField.has(field)).sort((a, b) => count(b) - count(a))[0]
}

function addToIndex<Item>(byField: Map<string, Map<string, Item[]>>, { field, values }: Condition, item: Item): void {
  const byValue = byField.get(field) ?? new Map<string, Item[]>()
  byField.set(field, byValue)
  for (const value of new Set(values)) {
    const items = byValue.get(value)
    if (items) items.push(item)
    else byValue.set(value, [item])
  }
}
