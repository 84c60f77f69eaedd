import { FluxGateError } from '../core/errors.js'
import { given } from '../core/given.js'
import type { RuleSetProvider } from '../core/rule-set-provider.js'
import type { RuleStore } from '../core/rule-store.js'
import { isObject } from '../rules/fields.js'
import { fileRuleStore } from '../rules/file/file-rule-store.js'
import { objectRules } from '../rules/object-provider.js'
import type { FluxGateOptions } from './gate-options.js'
import { type MongoRuleStoreOptions, mongoRuleStore } from './mongo-rule-store.js'
import type { RedisOptions } from './open-redis-target.js'
import { type RedisRuleStoreOptions, redisRuleStore } from './redis-rule-store.js'

/** Settings of a rule store, as in the `rules` section of a configuration. */
export type RulesSettings =
  | { readonly type: 'file'; readonly path: string }
  | ({ readonly type: 'redis' } & RedisOptions & Omit<RedisRuleStoreOptions, 'clock'>)
  | ({ readonly type: 'mongo'; readonly uri: string } & Omit<MongoRuleStoreOptions, 'clock'>)

/** Opens rules from a path, settings or objects. Returns a provider unchanged. */
export function openRules(rules: FluxGateOptions['rules']): RuleSetProvider {
  if (typeof rules === 'string') return fileRuleStore(rules)
  if (isProvider(rules)) return rules
  if (isSettings(rules)) return openRuleStore(rules)
  if (rules !== undefined) return objectRules(rules)
  throw new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    "The rules option is missing. Pass a path such as './rules.yaml', rule sets as objects, or a RuleSetProvider.",
  )
}

/** Throws immediately if the settings are invalid. Does not wait for the server. */
export function openRuleStore(settings: RulesSettings): RuleStore {
  switch (settings.type) {
    case 'file':
      return fileRuleStore(settings.path)
    case 'redis': {
      const { type: _, prefix, channel, maxHistory, timeoutMs, ...address } = settings
      return redisRuleStore(address, given({ prefix, channel, maxHistory, timeoutMs }))
    }
    case 'mongo': {
      const { uri, database, collection } = settings
      return mongoRuleStore(uri, given({ database, collection }))
    }
    default:
      throw new FluxGateError(
        'FLUXGATE_CONFIG_INVALID',
        `rules.type must be file, redis or mongo; received ${JSON.stringify((settings as { type: unknown }).type)}.`,
      )
  }
}

/** True if the rules may change by themselves. Rules given as objects never do. */
export const canChange = (rules: FluxGateOptions['rules']): boolean =>
  typeof rules === 'string' || isProvider(rules) || isSettings(rules)

const isProvider = (rules: FluxGateOptions['rules']): rules is RuleSetProvider =>
  isObject(rules) && 'load' in rules && typeof rules.load === 'function'

const isSettings = (rules: FluxGateOptions['rules']): rules is RulesSettings =>
  isObject(rules) && Object.hasOwn(rules, 'type')

/** True for a rule store, which must be closed. */
export const isRuleStore = (rules: RuleSetProvider): rules is RuleStore => 'putRule' in rules && 'close' in rules
