import { isObject } from '../../../validation/fields.js'

/** For each requested item, the index of the present item it corresponds to; `undefined` for a new item. */
export type Matching = readonly (number | undefined)[]

/**
 * Matches items by `id` if all have one, otherwise by position. Returns `undefined` if remaining items would change their
 * order, or if a new item would come before one that stays.
 */
export function matchItems(present: readonly unknown[], wanted: readonly unknown[]): Matching | undefined {
  const byId = idsOf(present)
  const hasIds = byId !== undefined && idsOf(wanted) !== undefined
  const matching = wanted.map((item, index) => {
    if (hasIds) return byId.get(idOf(item) as string)
    return index < present.length ? index : undefined
  })
  const staying = matching.filter((index) => index !== undefined)
  if (staying.length === 0 || matching.slice(0, staying.length).includes(undefined)) return undefined
  return staying.every((index, place) => place === 0 || index > (staying[place - 1] as number)) ? matching : undefined
}

/** Like `matchItems`, for the keys of a map. */
export function matchNames(present: readonly string[], wanted: readonly string[]): Matching | undefined {
  const asItems = (names: readonly string[]) => names.map((id) => ({ id }))
  return matchItems(asItems(present), asItems(wanted))
}

const idOf = (item: unknown): unknown => (isObject(item) && Object.hasOwn(item, 'id') ? item.id : undefined)

function idsOf(items: readonly unknown[]): ReadonlyMap<string, number> | undefined {
  const ids = new Map<string, number>()
  for (const [index, item] of items.entries()) {
    const id = idOf(item)
    if (typeof id !== 'string' || ids.has(id)) return undefined
    ids.set(id, index)
  }
  return ids
}
