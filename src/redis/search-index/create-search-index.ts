import { checkArgument } from '../../validation/options.js'
import { connectRedis } from '../client/connect-redis.js'
import type { RedisOptions } from '../client/open/target.js'
import { type IndexDefinition, readDefinition, searchIndexOptions } from './definition.js'
import { IndexCalls } from './index-calls.js'
import { SearchIndex } from './search-index.js'

/** Options of `searchIndex`. */
export interface SearchIndexOptions extends IndexDefinition {
  /** Prefix of all Redis keys; default `fluxgate`. */
  readonly prefix?: string
  /** Timeout of a call in milliseconds; default 5000. */
  readonly timeoutMs?: number
}

/**
 * Opens a search index: records in Redis that are found by number, text, tag and prefix.
 *
 * @param where a `redis://` or `rediss://` URI, connection options, or an ioredis or node-redis client. The caller closes a client
 *   that it passes in.
 */
export function searchIndex<Item extends object = Record<string, unknown>>(
  where: string | RedisOptions | object,
  options: SearchIndexOptions,
): SearchIndex<Item> {
  checkArgument('options', options, searchIndexOptions)
  const { prefix = 'fluxgate', timeoutMs = 5_000 } = options
  const definition = readDefinition(options)
  return new SearchIndex<Item>(new IndexCalls(connectRedis(where, timeoutMs), prefix, definition, timeoutMs))
}
