import type { RequestContext } from '../request-context.js'
import type { Condition } from '../rule.js'
import type { Steps } from '../scheduling/steps.js'
import { readerOf } from './condition.js'
import { type ReadField, textOf } from './request-field.js'

interface Conditional {
  readonly when: readonly Condition[]
}

/** Items by the value that one field of a request must have. */
export interface ConditionFile<Filed> {
  readonly read: ReadField
  readonly byValue: ReadonlyMap<string, Filed>
}

export interface ConditionIndex<Item> {
  /** Those that cannot be looked up. */
  readonly others: readonly Item[]
  /** Those that can, without the condition that looking them up has already answered. */
  readonly files: readonly ConditionFile<readonly Item[]>[]
}

/**
 * One path may carry a rule per tenant or plan, told apart by `when` alone. Such rules are found by the value that the
 * request has, not by asking each. Every item is filed under one of its conditions, that with the most different values.
 */
export function* indexConditions<Item extends Conditional>(items: readonly Item[]): Steps<ConditionIndex<Item>> {
  // A handful is asked as fast as looked up.
  if (items.length <= 8) return { others: items, files: [] }
  const variety = yield* countValues(items)
  const others: Item[] = []
  const byField = new Map<string, Map<string, Item[]>>()
  for (const item of items) {
    yield
    const best = mostVaried(item.when, variety)
    if (!best) others.push(item)
    else fileUnder(byField, best, { ...item, when: item.when.filter((condition) => condition !== best) })
  }
  return { others, files: Array.from(byField, ([field, byValue]) => ({ read: readerOf(field) as ReadField, byValue })) }
}

/** Adds what is filed under the request's value, or under each of its values if it has a list. */
export function lookUp<Filed>(file: ConditionFile<Filed>, context: RequestContext, found: Filed[]): void {
  const value = file.read(context, undefined)
  if (Array.isArray(value)) for (const one of value) addFiled(file, one, found)
  else addFiled(file, value, found)
}

function addFiled<Filed>({ byValue }: ConditionFile<Filed>, value: unknown, found: Filed[]): void {
  const text = textOf(value)
  const filed = text === undefined ? undefined : byValue.get(text)
  if (filed !== undefined) found.push(filed)
}

/** Only what is compared letter by letter and does not depend on the pattern can be looked up. */
function* countValues(items: readonly Conditional[]): Steps<Map<string, Set<string>>> {
  const variety = new Map<string, Set<string>>()
  for (const { when } of items) {
    yield
    for (const { field, values } of when) {
      if (field === 'method' || field.startsWith('path.') || !readerOf(field)) continue
      const known = variety.get(field) ?? new Set()
      for (const value of values) known.add(value)
      variety.set(field, known)
    }
  }
  return variety
}

function mostVaried(when: readonly Condition[], variety: Map<string, Set<string>>): Condition | undefined {
  const count = ({ field }: Condition): number => variety.get(field)?.size ?? 0
  return when.filter(({ field }) => variety.has(field)).sort((a, b) => count(b) - count(a))[0]
}

function fileUnder<Item>(byField: Map<string, Map<string, Item[]>>, { field, values }: Condition, item: Item): void {
  const byValue = byField.get(field) ?? new Map<string, Item[]>()
  byField.set(field, byValue)
  for (const value of new Set(values)) {
    const filed = byValue.get(value)
    if (filed) filed.push(item)
    else byValue.set(value, [item])
  }
}
