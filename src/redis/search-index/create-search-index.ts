import { FluxGateError } from '../../core/errors.js'
import { longestWaitMs } from '../../core/range.js'
import { keyPrefix } from '../../validation/kinds.js'
import { connectRedis } from '../client/connect-redis.js'
import type { RedisOptions } from '../client/open/target.js'
import { type IndexDefinition, readDefinition } from './definition.js'
import { IndexCalls } from './index-calls.js'
import { SearchIndex } from './search-index.js'

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
  if (typeof options !== 'object' || options === null) throw invalid('options', 'an object that names the index')
  const { prefix = 'fluxgate', timeoutMs = 5_000, ...definition } = options
  if (keyPrefix.parse(prefix) === undefined) throw invalid('prefix', keyPrefix.allowed)
  if (!(timeoutMs >= 1 && timeoutMs <= longestWaitMs)) throw invalid('timeoutMs', `a number from 1 to ${longestWaitMs}`)
  const read = readDefinition(definition)
  return new SearchIndex<Item>(new IndexCalls(connectRedis(where, timeoutMs), prefix, read, timeoutMs))
}

const invalid = (name: string, expected: string): FluxGateError =>
  new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `${name} must be ${expected}.`)
