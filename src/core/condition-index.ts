import { readerOf } from './condition.js'
import type { RequestContext } from './request-context.js'
import { type ReadField, textOf } from './request-field.js'
import type { Rule } from './rule.js'

/** The items whose conditions are worth checking for a request, in any order; the others cannot hold. */
export type Narrow<Item> = (context: RequestContext) => readonly Item[]

/**
 * One path may carry a rule per tenant or plan, told apart by `when` alone. Such rules are found by the value that the
 * request has, not by asking each. Every item is filed under one of its conditions, that with the most different values.
 * Undefined when asking each is no slower.
 */
export function indexConditions<Item extends { readonly rule: Rule }>(
  items: readonly Item[],
): Narrow<Item> | undefined {
  if (items.length <= 8) return undefined
  const variety = countValues(items)
  const always: Item[] = []
  const files = new Map<string, File<Item>>()
  for (const item of items) {
    const fields = item.rule.when.map(({ field }) => field).filter((field) => variety.has(field))
    const best = fields.sort((a, b) => (variety.get(b)?.size ?? 0) - (variety.get(a)?.size ?? 0))[0]
    if (best === undefined) always.push(item)
    else fileUnder(files, best, item)
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
function countValues(items: readonly { readonly rule: Rule }[]): Map<string, Set<string>> {
  const variety = new Map<string, Set<string>>()
  for (const { field, values } of items.flatMap(({ rule }) => rule.when)) {
    if (field === 'method' || field.startsWith('path.') || !readerOf(field)) continue
    const known = variety.get(field) ?? new Set()
    for (const value of values) known.add(value)
    variety.set(field, known)
  }
  return variety
}

function fileUnder<Item extends { readonly rule: Rule }>(
  files: Map<string, File<Item>>,
  field: string,
  item: Item,
): void {
  const file = files.get(field) ?? { read: readerOf(field) as ReadField, byValue: new Map<string, Item[]>() }
  files.set(field, file)
  const values = item.rule.when.find((condition) => condition.field === field)?.values ?? []
  for (const value of new Set(values)) {
    const filed = file.byValue.get(value)
    if (filed) filed.push(item)
    else file.byValue.set(value, [item])
  }
}
