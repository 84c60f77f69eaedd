/** An index of products, and helpers for tests. */
import type { Redis } from 'ioredis'
import { onTestFinished } from 'vitest'
import { type FindQuery, type SearchIndex, type SearchIndexOptions, searchIndex } from '../../../src/search-index.js'
import { freshPrefix } from '../../servers/shared-redis.js'

export interface Product {
  readonly name?: string
  readonly price?: number | null
  readonly category?: string
  readonly colours?: readonly string[]
  readonly sold?: number
}

export const fields = {
  price: { kind: 'number' },
  name: { kind: 'text' },
  shelf: { kind: 'composite', of: ['category', 'price'] },
  colours: { kind: 'tags' },
  words: { kind: 'suggest', from: 'name', weight: 'sold' },
} as const

/** The location of the keys of an index. */
export const baseOf = (prefix: string): string => `${prefix}:{index:products}`

export function freshIndex<Item extends object = Product>(
  client: Redis,
  options: Partial<SearchIndexOptions> = {},
): SearchIndex<Item> {
  const index = searchIndex<Item>(client, { prefix: freshPrefix(), name: 'products', fields, ...options })
  onTestFinished(() => index.clear())
  return index
}

export const product = (name: string, price: number, sold = 1, more: Partial<Product> = {}): Product => ({
  name,
  price,
  sold,
  ...more,
})

/** The ids of all pages. */
export async function idsOf(index: SearchIndex<Product>, query: FindQuery): Promise<string[]> {
  const ids: string[] = []
  let cursor: string | null | undefined
  do {
    const page = await index.find({ ...query, cursor })
    ids.push(...page.items.map(({ id }) => id))
    cursor = page.cursor
  } while (cursor !== null)
  return ids
}
