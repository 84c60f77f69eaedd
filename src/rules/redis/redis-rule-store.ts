import type { Clock } from '../../core/clock.js'
import type { RuleStore } from '../../core/contracts/rule-store.js'
import { longestWaitMs } from '../../core/range.js'
import { connectRedis } from '../../redis/client/connect-redis.js'
import type { RedisOptions } from '../../redis/client/open/target.js'
import type { Kind } from '../../validation/kind.js'
import { anyValue, keyPrefix, text, wholeNumber } from '../../validation/kinds.js'
import { checkOptions } from '../../validation/options.js'
import { createRuleStore } from '../store/create-rule-store.js'
import { RedisRuleStorage } from './redis-rule-storage.js'

/** Options of `redisRuleStore`. */
export interface RedisRuleStoreOptions {
  /** Prefix of all Redis keys; default `fluxgate`. */
  readonly prefix?: string
  /** Pub/sub channel that announces changes; default `fluxgate:rule-reload`. */
  readonly channel?: string
  /** History entries kept per rule set; default 1000. */
  readonly maxHistory?: number
  /** Timeout of a call in milliseconds; default 5000. */
  readonly timeoutMs?: number
  /** Clock for timestamps, for tests. */
  readonly clock?: Clock
}

export const defaultChannel = 'fluxgate:rule-reload'

const kinds: Readonly<Record<keyof RedisRuleStoreOptions, Kind<unknown>>> = {
  prefix: keyPrefix,
  channel: text,
  maxHistory: wholeNumber(1, 1_000_000),
  timeoutMs: wholeNumber(1, longestWaitMs),
  clock: anyValue,
}

/**
 * Opens a rule store in Redis. All processes that use the same prefix share its rules and are notified of changes.
 *
 * @param where a `redis://` or `rediss://` URI, connection options, or an ioredis or node-redis client. The caller closes a client
 *   that it passes in.
 * @throws FluxGateError if an option is unknown or invalid
 */
export function redisRuleStore(where: string | RedisOptions | object, options: RedisRuleStoreOptions = {}): RuleStore {
  checkOptions('Options of redisRuleStore', options, kinds)
  const { prefix = 'fluxgate', channel = defaultChannel, timeoutMs, maxHistory, clock } = options
  const connection = connectRedis(where, timeoutMs)
  const storage = new RedisRuleStorage(connection, { prefix, channel, maxHistory, timeoutMs, clock })
  return createRuleStore(storage, clock === undefined ? {} : { clock })
}
