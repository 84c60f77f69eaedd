import { given } from '../core/omit-undefined.js'
import type { RulesSettings as RuleStoreSettings } from '../rules/open-rule-store.js'
import type { Mistakes } from '../validation/issues.js'
import { isMongoUri } from './kinds.js'
import type { Settings } from './settings.js'
import { redisAddress, type Sources } from './store.js'

type RulesSettings = Settings['rules']

/**
 * What the settings mean together: an address of MongoDB means rules in MongoDB, also one in the environment beside a file that
 * says otherwise. Rules in Redis are where the buckets are, unless they have an address of their own.
 */
export function resolveRules(
  rules: RulesSettings,
  sources: Sources,
  store: Settings['store'],
  mistakes: Mistakes,
): RulesSettings {
  const type = typeOf(rules, sources)
  const { uri } = rules
  if (type === 'file') return { ...rules, type, uri: undefined }
  if (uri === undefined && type === 'mongo')
    mistakes.add('rules', 'found no address of MongoDB; allowed: uri, or the variable FLUXGATE_MONGO_URI')
  if (uri === undefined && type === 'redis' && store.type !== 'redis')
    mistakes.add('rules', 'found no address of Redis; allowed: uri, or buckets in Redis (store), which rules may share')
  if (uri !== undefined && isMongoUri(uri) !== (type === 'mongo'))
    mistakes.add('rules.uri', `not an address for type ${type}; allowed: ${addresses[type]}`)
  return { ...rules, type }
}

const addresses = { redis: 'redis://… or rediss://…', mongo: 'mongodb://… or mongodb+srv://…' }

function typeOf({ type, uri }: RulesSettings, sources: Sources): RulesSettings['type'] {
  if (sources.type === 'environment') return type
  if (sources.uri === 'environment') return meaning(uri)
  if (sources.type === 'file') return type
  return sources.uri === undefined ? type : meaning(uri)
}

const meaning = (uri: string | undefined): 'mongo' | 'redis' => (isMongoUri(uri) ? 'mongo' : 'redis')

/** What the rule store is made of. */
export function ruleStoreSettings({
  rules,
  store,
  reload,
}: Pick<Settings, 'rules' | 'store' | 'reload'>): RuleStoreSettings {
  const { type, path, uri = '', prefix = store.prefix, database, collection } = rules
  if (type === 'file') return { type, path }
  if (type === 'mongo') return { type, uri, ...given({ database, collection }) }
  return { type, ...(uri === '' ? redisAddress(store) : { uri }), prefix, channel: reload.channel }
}
