import { splitRedisSettings } from '../../config/store.js'
import type { RuleSetProvider } from '../../core/contracts/rule-set-provider.js'
import { FluxGateError } from '../../core/errors.js'
import { connectRedis } from '../../redis/client/connect-redis.js'
import type { RedisStoreSettings } from '../../redis/client/open/target.js'
import { createRedisLock } from '../../redis/lock/redis-lock.js'
import { announcingProvider } from '../../rules/redis/announcing-provider.js'
import { defaultChannel } from '../../rules/redis/redis-rule-store.js'
import { RulePoller } from '../../rules/redis/rule-poller.js'
import { isObject } from '../../validation/fields.js'
import type { Closable } from '../gate-parts.js'
import type { FluxGateOptions } from '../options.js'

/**
 * For the reload strategy PUBSUB with rules outside Redis: publishes and receives rule changes through the Redis of the bucket
 * store. Returns undefined if the rules need no such channel.
 */
export function announcedByStore(
  rules: RuleSetProvider,
  { store, reload }: FluxGateOptions,
): (Closable & { readonly rules: RuleSetProvider }) | undefined {
  if (reload?.strategy !== 'PUBSUB' || rules.watchKind === 'PUBSUB') return undefined
  const connection = connectRedis(addressOf(rules, store), undefined)
  const { channel = defaultChannel } = reload
  const lock = createRedisLock(connection)
  const announced = announcingProvider(rules, connection, channel, new RulePoller(lock, `poller of ${channel}`))
  return { rules: announced, close: () => lock.close() }
}

function addressOf({ source }: RuleSetProvider, store: FluxGateOptions['store']): string | object {
  if (typeof store === 'string' && store !== 'memory') return store
  if (isObject(store) && !('charge' in store)) {
    const { type: _, ...settings } = store as RedisStoreSettings & { readonly type?: string }
    return splitRedisSettings(settings).address
  }
  throw new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    `The reload strategy PUBSUB needs a Redis store given by URI or options for rules from ${source}. Configure such a store, or use the reload strategy AUTO.`,
  )
}
