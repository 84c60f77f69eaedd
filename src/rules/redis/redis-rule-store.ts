import type { Clock } from '../../core/clock.js'
import { longestWaitMs } from '../../core/range.js'
import type { RuleStore } from '../../core/rule-store.js'
import { connectRedis } from '../../redis/client/connect-redis.js'
import type { RedisOptions } from '../../redis/client/open/target.js'
import { configInvalid } from '../../validation/config-invalid.js'
import { type Kind, openFields } from '../../validation/fields.js'
import { noMistakes } from '../../validation/issues.js'
import { text, wholeNumber } from '../../validation/kinds.js'
import { keyPrefix } from '../../validation/setting-kinds.js'
import { ruleStoreOf } from '../store/rule-store-of.js'
import { RedisRuleStorage } from './redis-rule-storage.js'

export interface RedisRuleStoreOptions {
  /** What the names of all keys begin with; default `fluxgate`. */
  readonly prefix?: string
  /** Where changes are announced; default `fluxgate:rule-reload`. */
  readonly channel?: string
  /** How many changes of each rule set are kept; default 1000. */
  readonly maxHistory?: number
  /** How long an answer may take; default 5000. */
  readonly timeoutMs?: number
  readonly clock?: Clock
}

export const standardChannel = 'fluxgate:rule-reload'

const kinds: Readonly<Record<Exclude<keyof RedisRuleStoreOptions, 'clock'>, Kind<unknown>>> = {
  prefix: keyPrefix,
  channel: text,
  maxHistory: wholeNumber(1, 1_000_000),
  timeoutMs: wholeNumber(1, longestWaitMs),
}

/**
 * Rules in Redis, shared by all processes that name the same prefix, each of which learns of a change at once. Takes what
 * `redisStore` takes: a URI, the nodes of a cluster, sentinels, or a client, which stays the caller's to close.
 */
export function redisRuleStore(where: string | RedisOptions | object, options: RedisRuleStoreOptions = {}): RuleStore {
  const mistakes = noMistakes()
  const fields = openFields(options, '', [...Object.keys(kinds), 'clock'], 'an object of options', mistakes)
  for (const [name, kind] of Object.entries(kinds)) fields?.read(name, kind)
  if (mistakes.count > 0) throw configInvalid('The options of redisRuleStore', mistakes.kept)
  const { prefix = 'fluxgate', channel = standardChannel, timeoutMs, maxHistory, clock } = options
  const connection = connectRedis(where, timeoutMs)
  const storage = new RedisRuleStorage(connection, { prefix, channel, maxHistory, timeoutMs, clock })
  return ruleStoreOf(storage, clock === undefined ? {} : { clock })
}
