import { FluxGateError } from '../../core/errors.js'
import { longestWaitMs } from '../../core/range.js'
import { keyPrefix } from '../../validation/setting-kinds.js'
import { connectRedis } from '../client/connect-redis.js'
import type { RedisOptions } from '../client/open/target.js'
import { type IndexDefinition, readDefinition } from './definition.js'
import { IndexCalls } from './index-calls.js'
import { SearchIndex } from './search-index.js'

export interface SearchIndexOptions extends IndexDefinition {
  /** What the names of all keys begin with; default `fluxgate`. */
  readonly prefix?: string
  /** How long one call may take; default 5 000. */
  readonly timeoutMs?: number
}

/**
 * Records in Redis that are found by numbers, texts, tags and beginnings. Takes what `redisStore` takes: an address, or a
 * client of ioredis or node-redis, which stays the caller's to close.
 */
export function searchIndex<Item extends object = Record<string, unknown>>(
  where: string | RedisOptions | object,
  options: SearchIndexOptions,
): SearchIndex<Item> {
  if (typeof options !== 'object' || options === null) throw invalid('options', 'an object with the name of the index')
  const { prefix = 'fluxgate', timeoutMs = 5_000, ...definition } = options
  if (keyPrefix.parse(prefix) === undefined) throw invalid('prefix', keyPrefix.allowed)
  if (!(timeoutMs >= 1 && timeoutMs <= longestWaitMs)) throw invalid('timeoutMs', `a number from 1 to ${longestWaitMs}`)
  const read = readDefinition(definition)
  return new SearchIndex<Item>(new IndexCalls(connectRedis(where, timeoutMs), prefix, read, timeoutMs))
}

const invalid = (place: string, allowed: string): FluxGateError =>
  new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `${place}: not understood; allowed: ${allowed}.`)
