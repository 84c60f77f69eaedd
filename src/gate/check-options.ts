import { settings } from '../config/settings.js'
import { isClock } from '../core/clock.js'
import { isStrategy, reloadChoices } from '../rules/reload/choose-reload.js'
import type { Kind, Kinds } from '../validation/kind.js'
import {
  anyValue,
  boolean,
  codeValue,
  identifier,
  milliseconds,
  oneOf,
  text,
  warningLogger,
  wholeNumber,
} from '../validation/kinds.js'
import * as options from '../validation/options.js'
import { object } from '../validation/structures.js'
import type { FluxGateOptions } from './options.js'

const { ratelimit, reload, waitForRefill, store } = settings

const group = (kinds: Kinds): Kind<unknown> => object({}, kinds, { allowed: 'an object of options' })

/** `rules`, `store`, `keyResolvers`, `bucketResetHandler` and `config` are validated where they are used. */
const kinds: Readonly<Record<keyof FluxGateOptions, Kind<unknown>>> = {
  rules: anyValue,
  store: anyValue,
  keyResolvers: anyValue,
  bucketResetHandler: anyValue,
  config: anyValue,
  defaultRuleSetId: identifier,
  missingRuleBehavior: oneOf(['ALLOW', 'DENY'] as const),
  ipv6Prefix: ratelimit.ipv6Prefix.kind,
  onStoreFailure: ratelimit.onStoreFailure.kind,
  localShare: ratelimit.localShare.kind,
  maxKeys: store.maxKeys.kind,
  maxReservations: store.maxReservations.kind,
  clock: codeValue('a clock: an object whose now() returns epoch milliseconds', isClock),
  logger: warningLogger,
  metrics: boolean,
  reload: group({
    // In code, a custom `ReloadStrategy` is allowed too.
    strategy: codeValue(
      `${reloadChoices.join(', ')} or a ReloadStrategy`,
      (value) => isStrategy(value) || oneOf(reloadChoices).parse(value) !== undefined,
    ),
    channel: text,
    pollingIntervalMs: milliseconds,
    pollingInterval: reload.pollingInterval.kind,
    resetBucketsOnReload: boolean,
  }),
  waitForRefill: group({
    maxWaitMs: milliseconds,
    maxWaitTime: waitForRefill.maxWaitTime.kind,
    maxConcurrentWaits: waitForRefill.maxConcurrentWaits.kind,
  }),
  resilience: group({
    timeoutMs: milliseconds,
    connectTimeoutMs: milliseconds,
    failures: wholeNumber(1, 1_000_000),
    openMs: milliseconds,
  }),
}

/** Validates options given in code as strictly as a configuration file, and converts durations to milliseconds. */
export function checkOptions(given: FluxGateOptions): FluxGateOptions {
  options.checkOptions('Options of createFluxGate', given, kinds)
  return inMilliseconds(given)
}

/** Converts durations in the notation of a file (`'30s'`) to milliseconds. */
function inMilliseconds(options: FluxGateOptions): FluxGateOptions {
  const intervalMs = reload.pollingInterval.kind.parse(options.reload?.pollingInterval)
  const maxWaitMs = waitForRefill.maxWaitTime.kind.parse(options.waitForRefill?.maxWaitTime)
  return {
    ...options,
    ...(intervalMs !== undefined && { reload: { pollingIntervalMs: intervalMs, ...options.reload } }),
    ...(maxWaitMs !== undefined && { waitForRefill: { maxWaitMs, ...options.waitForRefill } }),
  }
}
