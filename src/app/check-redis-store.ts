import { longestWaitMs } from '../core/range.js'
import { type Kind, openFields } from '../rules/fields.js'
import { wholeNumber, yesOrNo } from '../rules/kinds.js'
import { type Mistakes, noMistakes } from '../rules/mistakes.js'
import { configInvalid } from './config-invalid.js'
import { storeSettings } from './config-store-settings.js'
import type { RedisOptions } from './open-redis-target.js'
import type { RedisStoreOptions } from './redis-store.js'

const milliseconds: Kind<number> = {
  allowed: `a number of milliseconds from 0 to ${longestWaitMs}`,
  parse: (value) => (typeof value === 'number' && value >= 0 && value <= longestWaitMs ? value : undefined),
}

const kinds: Readonly<Record<Exclude<keyof RedisStoreOptions, 'clock'>, Kind<unknown>>> = {
  prefix: storeSettings.prefix.kind,
  knownRefusals: yesOrNo,
  leaseShare: storeSettings.leaseShare.kind,
  timeoutMs: milliseconds,
  connectTimeoutMs: milliseconds,
  failures: wholeNumber(1, 1_000_000),
  openMs: milliseconds,
}

const addressNames: Readonly<Record<keyof RedisOptions, true>> = {
  uri: true,
  clusterNodes: true,
  sentinels: true,
  sentinelName: true,
  username: true,
  password: true,
  sentinelUsername: true,
  sentinelPassword: true,
  tls: true,
  connections: true,
}

/** Throws for unknown and invalid options instead of ignoring them. */
export function checkStoreOptions(options: RedisStoreOptions): void {
  checked('Options of redisStore', (issues) => {
    const names = [...Object.keys(kinds), 'clock']
    const fields = openFields(options, '', names, 'an object of options', issues)
    for (const [name, kind] of Object.entries(kinds)) fields?.read(name, kind)
  })
}

/** Throws for unknown names only. The values are validated when the connection is opened. */
export function checkAddressNames(address: RedisOptions): void {
  checked('Redis connection options', (issues) => {
    openFields(address, '', Object.keys(addressNames), 'an object of options', issues)
  })
}

function checked(what: string, check: (issues: Mistakes) => void): void {
  const issues = noMistakes()
  check(issues)
  if (issues.count > 0) throw configInvalid(what, issues.kept)
}
