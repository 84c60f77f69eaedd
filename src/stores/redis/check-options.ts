import { longestWaitMs } from '../../core/range.js'
import { configInvalid } from '../../validation/config-invalid.js'
import { type Kind, openFields } from '../../validation/fields.js'
import { type Mistakes, noMistakes } from '../../validation/issues.js'
import { wholeNumber, yesOrNo } from '../../validation/kinds.js'
import type { RedisStoreOptions } from './redis-store.js'
import { storeSettings } from './settings.js'

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

/** A misspelt option must not silently do nothing. */
export function checkStoreOptions(options: RedisStoreOptions): void {
  checked('The options of redisStore', (mistakes) => {
    const names = [...Object.keys(kinds), 'clock']
    const fields = openFields(options, '', names, 'an object of options', mistakes)
    for (const [name, kind] of Object.entries(kinds)) fields?.read(name, kind)
  })
}

function checked(what: string, check: (mistakes: Mistakes) => void): void {
  const mistakes = noMistakes()
  check(mistakes)
  if (mistakes.count > 0) throw configInvalid(what, mistakes.kept)
}
