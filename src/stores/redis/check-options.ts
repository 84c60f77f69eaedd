import { longestWaitMs } from '../../core/range.js'
import { configInvalid } from '../../validation/config-invalid.js'
import { type Kind, openFields } from '../../validation/fields.js'
import { noIssues, type ValidationIssues } from '../../validation/issues.js'
import { boolean, wholeNumber } from '../../validation/kinds.js'
import type { RedisStoreOptions } from './redis-store.js'
import { storeSettings } from './settings.js'

const milliseconds: Kind<number> = {
  allowed: `a number of milliseconds from 0 to ${longestWaitMs}`,
  parse: (value) => (typeof value === 'number' && value >= 0 && value <= longestWaitMs ? value : undefined),
}

const kinds: Readonly<Record<Exclude<keyof RedisStoreOptions, 'clock'>, Kind<unknown>>> = {
  prefix: storeSettings.prefix.kind,
  knownRefusals: boolean,
  leaseShare: storeSettings.leaseShare.kind,
  timeoutMs: milliseconds,
  connectTimeoutMs: milliseconds,
  failures: wholeNumber(1, 1_000_000),
  openMs: milliseconds,
}

/** Throws for unknown and invalid options instead of ignoring them. */
export function checkStoreOptions(options: RedisStoreOptions): void {
  checked('Options of redisStore', (issues) => {
    const names = [...Object.keys(kinds), 'clock']
    const fields = openFields(options, '', names, 'an object of options', issues)
    for (const [name, kind] of Object.entries(kinds)) fields?.read(name, kind)
  })
}

function checked(what: string, check: (issues: ValidationIssues) => void): void {
  const issues = noIssues()
  check(issues)
  if (issues.count > 0) throw configInvalid(what, issues.kept)
}
