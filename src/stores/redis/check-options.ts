import type { Kind } from '../../validation/kind.js'
import { anyValue, boolean, milliseconds, wholeNumber } from '../../validation/kinds.js'
import { checkOptions } from '../../validation/options.js'
import type { RedisStoreOptions } from './redis-store.js'
import { storeSettings } from './settings.js'

const kinds: Readonly<Record<keyof RedisStoreOptions, Kind<unknown>>> = {
  prefix: storeSettings.prefix.kind,
  cachedRejections: boolean,
  knownRefusals: boolean,
  leaseShare: storeSettings.leaseShare.kind,
  timeoutMs: milliseconds,
  connectTimeoutMs: milliseconds,
  failures: wholeNumber(1, 1_000_000),
  openMs: milliseconds,
  clock: anyValue,
}

export const checkStoreOptions = (options: RedisStoreOptions): void =>
  checkOptions('Options of redisStore', options, kinds)
