import { readerOf } from './condition.js'
import type { RequestContext } from './request-context.js'
import { type ReadField, textOf } from './request-field.js'
import type { Condition } from './rule.js'

/** The items whose conditions are worth checking for a request, in any order; the others cannot hold. */
export type Narrow<Item> = (context: RequestContext) => readonly Item[]

/**
 * One path may carry a rule per tenant or plan, told apart by `when` alone. Such rules are found by the value that the
 * request has, not by asking each. Every item is filed under one of its conditions, that with the most different values.
 * Undefined when asking each is no slower.
 */
export function indexConditions<Item>(
  items: readonly Item[],
  whenOf: (item: Item) => readonly Condition[],
): Narrow<Item> | undefined {
  if (items.length <= 8) return undefined
  const variety = countValues(items.flatMap(whenOf))
  const always: Item[] = []
  const files = new Map<string, File<Item>>()
  for (const item of items) {
    const best = mostVaried(whenOf(item), variety)
    if (best) fileUnder(files, best, item)
    else always.push(item)
  }
  if (files.size === 0) return undefined
  return (context) => {
    const found = new Set(always)
    for (const { read, byValue } of files.values()) {
      const value = read(context, undefined)
      for (const one of Array.isArray(value) ? value : [value]) {
        for (const item of byValue.get(textOf(one) ?? '') ?? []) found.add(item)
      }
    }
    return [...found]
  }
}

interface File<Item> {
  readonly read: ReadField
  readonly byValue: Map<string, Item[]>
}

/** Only what is compared letter by letter and does not depend on the pattern can be looked up. */
function countValues(conditions: readonly Condition[]): Map<string, Set<string>> {
  const variety = new Map<string, Set<string>>()
  for (const { field, values } of conditions) {
    if (field === 'method' || field.startsWith('path.') || !readerOf(field)) continue
    const known = variety.get(field) ?? new Set()
    for (const value of values) known.add(value)
    variety.set(field, known)
  }
  return variety
}

function mostVaried(when: readonly Condition[], variety: Map<string, Set<string>>): Condition | undefined {
  const count = ({ field }: Condition): number => variety.get(field)?.size ?? 0
  return when.filter(({ field }) => variety.has(field)).sort((a, b) => count(b) - count(a))[0]
}

function fileUnder<Item>(files: Map<string, File<Item>>, { field, values }: Condition, item: Item): void {
  const file = files.get(field) ?? { read: readerOf(field) as ReadField, byValue: new Map<string, Item[]>() }
  files.set(field, file)
  for (const value of new Set(values)) {
    const filed = file.byValue.get(value)
    if (filed) filed.push(item)
    else file.byValue.set(value, [item])
  }
}
