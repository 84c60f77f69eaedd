import { omitUndefined } from '../core/omit-undefined.js'
import { parseRedisUri } from '../redis/client/open/address.js'
import type { RedisOptions, RedisStoreSettings } from '../redis/client/open/target.js'
import { redisNames, storeSettings } from '../stores/redis/settings.js'
import { isObject } from '../validation/fields.js'
import { placeOf, type ValidationIssues } from '../validation/issues.js'
import { readValue } from '../validation/kind.js'
import { nameHint } from '../validation/nearest.js'
import type { Setting } from '../validation/setting.js'
import type { Settings } from './settings.js'

type StoreSettings = Settings['store']

/** The source of each setting; undefined for the default. */
export type Sources = Readonly<Record<string, 'environment' | 'file' | undefined>>

const addresses = ['uri', 'clusterNodes', 'sentinels'] as const

/** Resolves the store type and address. An address implies Redis, and an address in the environment replaces that of the file. */
export function resolveStore(store: StoreSettings, sources: Sources, issues: ValidationIssues): StoreSettings {
  const type = typeOf(store, sources)
  const isOverridden = addresses.some((name) => sources[name] === 'environment')
  const kept = addresses.filter((name) => sources[name] === 'environment' || (sources[name] && !isOverridden))
  if (type === 'redis') checkAddress(kept, 'store', issues)
  const dropped = addresses.filter((name) => !kept.includes(name)).map((name) => [name, undefined])
  const { knownRefusals = store.cachedRejections } = store
  const cachedRejections = sources.cachedRejections === undefined ? knownRefusals : store.cachedRejections
  return {
    ...store,
    ...credentials(store, sources),
    type,
    cachedRejections,
    knownRefusals: undefined,
    ...Object.fromEntries(dropped),
  }
}

function typeOf({ type }: StoreSettings, sources: Sources): StoreSettings['type'] {
  if (sources.type === 'environment') return type
  if (addresses.some((name) => sources[name] === 'environment')) return 'redis'
  if (sources.type === 'file') return type
  return addresses.some((name) => sources[name] !== undefined) ? 'redis' : type
}

/** Credentials of the file are dropped if a URI in the environment contains a password. */
function credentials({ uri, username, password }: StoreSettings, sources: Sources) {
  const isComplete = sources.uri === 'environment' && parseRedisUri(uri)?.password !== undefined
  const keep = (name: string): boolean => !isComplete || sources[name] === 'environment'
  return { username: keep('username') ? username : undefined, password: keep('password') ? password : undefined }
}

/** The options of the Redis store; undefined for another store type. */
export function redisSettings({
  type,
  maxKeys: _,
  maxReservations: __,
  ...settings
}: StoreSettings): RedisStoreSettings | undefined {
  return type === 'redis' ? omitUndefined(settings) : undefined
}

/** The connection options of the store's Redis, for other data that is kept there. */
export function redisAddress(store: StoreSettings): RedisOptions {
  const { connections: _, ...address } = splitRedisSettings(redisSettings(store) ?? {}).address
  return address
}

/** Splits the settings of a Redis store into the options of its connections and those of `redisStore`. */
export function splitRedisSettings(settings: RedisStoreSettings) {
  const { prefix, timeoutMs, connectTimeoutMs, leaseShare, cachedRejections, knownRefusals, ...address } = settings
  const options = { prefix, timeoutMs, connectTimeoutMs, leaseShare, cachedRejections, knownRefusals }
  return { address: address as RedisOptions, options: omitUndefined(options) }
}

/**
 * Validates store settings given in code, such as `{ uri, prefix }`, as strictly as those of a file. Also accepts
 * `type: 'redis'`, and options of `node:tls` as `tls`.
 */
export function checkRedisSettings(value: unknown, path: string, issues: ValidationIssues): RedisStoreSettings {
  const table: Readonly<Record<string, Setting<unknown>>> = storeSettings
  const result: Record<string, unknown> = {}
  for (const [name, received] of Object.entries(isObject(value) ? value : {})) {
    const setting = table[name]
    if (received === undefined || (name === 'type' && received === 'redis')) continue
    if (setting === undefined || !redisNames.includes(name))
      issues.add(placeOf(path, name), `unknown key; ${nameHint(name, redisNames)}`)
    else if (name === 'tls' && isObject(received)) result[name] = received
    else result[name] = readValue(setting.kind, received, placeOf(path, name), issues)
  }
  checkAddress(
    addresses.filter((name) => name in result),
    path,
    issues,
  )
  return result
}

function checkAddress(found: readonly string[], path: string, issues: ValidationIssues): void {
  if (found.length === 1) return
  const received = found.length === 0 ? 'none' : found.join(' and ')
  issues.add(path, `needs exactly one of ${addresses.join(', ')}; received ${received}`)
}
