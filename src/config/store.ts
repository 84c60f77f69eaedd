import { given } from '../core/omit-undefined.js'
import { parseRedisUri } from '../redis/client/open/address.js'
import type { RedisOptions, RedisStoreSettings } from '../redis/client/open/target.js'
import { redisNames, storeSettings } from '../stores/redis/settings.js'
import { isObject } from '../validation/fields.js'
import { type Mistakes, placeOf } from '../validation/issues.js'
import type { Setting } from '../validation/setting.js'
import { problem, unknownName } from './messages.js'
import type { Settings } from './settings.js'

type StoreSettings = Settings['store']

/** Where each setting comes from; `undefined` if it is the standard one. */
export type Sources = Readonly<Record<string, 'environment' | 'file' | undefined>>

const addresses = ['uri', 'clusterNodes', 'sentinels'] as const

/** What the settings mean together: an address means Redis, and one in the environment takes the place of the file's. */
export function resolveStore(store: StoreSettings, sources: Sources, mistakes: Mistakes): StoreSettings {
  const type = typeOf(store, sources)
  const isOverridden = addresses.some((name) => sources[name] === 'environment')
  const kept = addresses.filter((name) => sources[name] === 'environment' || (sources[name] && !isOverridden))
  if (type === 'redis') checkAddress(kept, 'store', mistakes)
  const dropped = addresses.filter((name) => !kept.includes(name)).map((name) => [name, undefined])
  return { ...store, ...credentials(store, sources), type, ...Object.fromEntries(dropped) }
}

function typeOf({ type }: StoreSettings, sources: Sources): StoreSettings['type'] {
  if (sources.type === 'environment') return type
  if (addresses.some((name) => sources[name] === 'environment')) return 'redis'
  if (sources.type === 'file') return type
  return addresses.some((name) => sources[name] !== undefined) ? 'redis' : type
}

/** A URI of the environment with a password in it is not given the file's. */
function credentials({ uri, username, password }: StoreSettings, sources: Sources) {
  const isComplete = sources.uri === 'environment' && parseRedisUri(uri)?.password !== undefined
  const keep = (name: string): boolean => !isComplete || sources[name] === 'environment'
  return { username: keep('username') ? username : undefined, password: keep('password') ? password : undefined }
}

/** What the store is made of; `undefined` if it is not in Redis. */
export function redisSettings({ type, maxKeys: _, ...settings }: StoreSettings): RedisStoreSettings | undefined {
  return type === 'redis' ? given(settings) : undefined
}

/** Where its Redis is, for whatever else is kept there. */
export function redisAddress(store: StoreSettings): RedisOptions {
  const {
    prefix: _,
    timeoutMs: __,
    connectTimeoutMs: ___,
    leaseShare: ____,
    knownRefusals: _____,
    connections: ______,
    ...address
  } = redisSettings(store) ?? {}
  return address
}

/**
 * The same settings given in code, as `{ uri, prefix }`, checked as those of a file are. `type: 'redis'` may stand beside
 * them, and `tls` may be options of `node:tls`.
 */
export function checkRedisSettings(value: unknown, path: string, mistakes: Mistakes): RedisStoreSettings {
  const table: Readonly<Record<string, Setting<unknown>>> = storeSettings
  const result: Record<string, unknown> = {}
  for (const [name, found] of Object.entries(isObject(value) ? value : {})) {
    const setting = table[name]
    if (found === undefined || (name === 'type' && found === 'redis')) continue
    if (setting === undefined || !redisNames.includes(name))
      mistakes.add(placeOf(path, name), unknownName(name, redisNames))
    else {
      result[name] = name === 'tls' && isObject(found) ? found : setting.kind.parse(found)
      if (result[name] === undefined) {
        mistakes.add(placeOf(path, name), problem(found, setting.kind.allowed, setting.isSecret))
      }
    }
  }
  checkAddress(
    addresses.filter((name) => name in result),
    path,
    mistakes,
  )
  return result
}

function checkAddress(found: readonly string[], path: string, mistakes: Mistakes): void {
  if (found.length === 1) return
  const what = found.length === 0 ? 'no address of redis' : found.join(' and ')
  mistakes.add(path, `found ${what}; allowed: one of ${addresses.join(', ')}`)
}
