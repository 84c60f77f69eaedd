import type { RuleStore } from '../core/contracts/rule-store.js'
import { FluxGateError } from '../core/errors.js'
import { omitUndefined } from '../core/omit-undefined.js'
import type { RedisOptions } from '../redis/client/open/target.js'
import { fileRuleStore } from './file/file-rule-store.js'
import { type MongoRuleStoreOptions, mongoRuleStore } from './mongo/mongo-rule-store.js'
import { type RedisRuleStoreOptions, redisRuleStore } from './redis/redis-rule-store.js'

/** Settings of a rule store, as in the `rules` section of a configuration. */
export type RulesSettings =
  | { readonly type: 'file'; readonly path: string }
  | ({ readonly type: 'redis' } & RedisOptions & Omit<RedisRuleStoreOptions, 'clock'>)
  | ({ readonly type: 'mongo'; readonly uri: string } & Omit<MongoRuleStoreOptions, 'clock'>)

/** Throws immediately if the settings are invalid. Does not wait for the server. */
export function openRuleStore(settings: RulesSettings): RuleStore {
  switch (settings.type) {
    case 'file':
      return fileRuleStore(settings.path)
    case 'redis': {
      const { type: _, prefix, channel, maxHistory, timeoutMs, ...address } = settings
      return redisRuleStore(address, omitUndefined({ prefix, channel, maxHistory, timeoutMs }))
    }
    case 'mongo': {
      const { uri, database, collection } = settings
      return mongoRuleStore(uri, omitUndefined({ database, collection }))
    }
    default:
      throw new FluxGateError(
        'FLUXGATE_CONFIG_INVALID',
        `rules.type must be file, redis or mongo; received ${JSON.stringify((settings as { type: unknown }).type)}.`,
      )
  }
}
