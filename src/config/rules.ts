import { omitUndefined } from '../core/omit-undefined.js'
import type { RulesSettings as RuleStoreSettings } from '../rules/open-rule-store.js'
import type { ValidationIssues } from '../validation/issues.js'
import { isMongoUri } from './kinds.js'
import type { Settings } from './settings.js'
import { redisAddress, type Sources } from './store.js'

type RulesSettings = Settings['rules']

/**
 * Resolves the type of the rule store from all settings. A URI implies the type, and a URI in the environment overrides the type
 * in the file. Rules in Redis without a URI use the Redis of the bucket store.
 */
export function resolveRules(
  rules: RulesSettings,
  sources: Sources,
  store: Settings['store'],
  issues: ValidationIssues,
): RulesSettings {
  const type = typeOf(rules, sources)
  const { uri } = rules
  if (type === 'file') return { ...rules, type, uri: undefined }
  if (uri === undefined && type === 'mongo')
    issues.add('rules', 'type mongo needs a MongoDB URI; set rules.uri or FLUXGATE_MONGO_URI')
  if (uri === undefined && type === 'redis' && store.type !== 'redis')
    issues.add('rules', 'type redis needs a Redis URI; set rules.uri, or configure a Redis store to share it')
  if (uri !== undefined && isMongoUri(uri) !== (type === 'mongo'))
    issues.add('rules.uri', `must be ${addresses[type]} for type ${type}; the received value is hidden`)
  return { ...rules, type }
}

const addresses = { redis: 'redis://… or rediss://…', mongo: 'mongodb://… or mongodb+srv://…' }

function typeOf({ type, uri }: RulesSettings, sources: Sources): RulesSettings['type'] {
  if (sources.type === 'environment') return type
  if (sources.uri === 'environment') return typeOfUri(uri)
  if (sources.type === 'file') return type
  return sources.uri === undefined ? type : typeOfUri(uri)
}

const typeOfUri = (uri: string | undefined): 'mongo' | 'redis' => (isMongoUri(uri) ? 'mongo' : 'redis')

/** The settings that open the rule store. */
export function ruleStoreSettings({
  rules,
  store,
  reload,
}: Pick<Settings, 'rules' | 'store' | 'reload'>): RuleStoreSettings {
  const { type, path, uri = '', prefix = store.prefix, database, collection } = rules
  if (type === 'file') return { type, path }
  if (type === 'mongo') return { type, uri, ...omitUndefined({ database, collection }) }
  return { type, ...(uri === '' ? redisAddress(store) : { uri }), prefix, channel: reload.channel }
}
