import { settings } from '../config/settings.js'
import { type Clock, isClock } from '../core/clock.js'
import { longestWaitMs } from '../core/range.js'
import { isStrategy, reloadChoices } from '../rules/reload/choose-reload.js'
import { configInvalid } from '../validation/config-invalid.js'
import { type Kind, openFields } from '../validation/fields.js'
import { noIssues } from '../validation/issues.js'
import { boolean, identifier, oneOf, text, wholeNumber } from '../validation/kinds.js'
import type { FluxGateOptions } from './options.js'

const milliseconds: Kind<number> = {
  allowed: `a number of milliseconds from 0 to ${longestWaitMs}`,
  parse: (value) => (typeof value === 'number' && value >= 0 && value <= longestWaitMs ? value : undefined),
}

const clockKind: Kind<Clock> = {
  allowed: 'a clock: an object whose now() returns epoch milliseconds',
  parse: (value) => (isClock(value) ? value : undefined),
}

const { ratelimit, reload, waitForRefill, store } = settings

/** In code, a custom `ReloadStrategy` is allowed too. */
const reloadKind: Kind<unknown> = {
  allowed: `${reloadChoices.join(', ')} or a ReloadStrategy`,
  parse: (value) => (isStrategy(value) ? value : oneOf(reloadChoices).parse(value)),
}

/** Kinds of all options with plain values, by group. The group '' holds the top-level options. */
const kinds: Readonly<Record<string, Readonly<Record<string, Kind<unknown>>>>> = {
  '': {
    defaultRuleSetId: identifier,
    missingRuleBehavior: oneOf(['ALLOW', 'DENY'] as const),
    ipv6Prefix: ratelimit.ipv6Prefix.kind,
    onStoreFailure: ratelimit.onStoreFailure.kind,
    localShare: ratelimit.localShare.kind,
    maxKeys: store.maxKeys.kind,
    clock: clockKind,
  },
  reload: {
    strategy: reloadKind,
    channel: text,
    pollingIntervalMs: milliseconds,
    pollingInterval: reload.pollingInterval.kind,
    resetBucketsOnReload: boolean,
  },
  waitForRefill: {
    maxWaitMs: milliseconds,
    maxWaitTime: waitForRefill.maxWaitTime.kind,
    maxConcurrentWaits: waitForRefill.maxConcurrentWaits.kind,
  },
  resilience: {
    timeoutMs: milliseconds,
    connectTimeoutMs: milliseconds,
    failures: wholeNumber(1, 1_000_000),
    openMs: milliseconds,
  },
}

/** Options that are validated where they are used. */
const others = ['rules', 'store', 'keyResolvers', 'bucketResetHandler', 'config']

/** Validates options given in code as strictly as a configuration file: unknown options throw instead of being ignored. */
export function checkOptions(options: FluxGateOptions): FluxGateOptions {
  const issues = noIssues()
  const groups = Object.keys(kinds).filter((group) => group !== '')
  for (const [place, members] of Object.entries(kinds)) {
    const value = place === '' ? options : options?.[place as 'reload' | 'waitForRefill' | 'resilience']
    if (value === undefined && place !== '') continue
    const names = place === '' ? [...Object.keys(members), ...groups, ...others] : Object.keys(members)
    const fields = openFields(value, place, names, 'an object of options', issues)
    for (const [name, kind] of Object.entries(members)) fields?.read(name, kind)
  }
  if (issues.count > 0) throw configInvalid('Options of createFluxGate', issues.kept)
  return inMilliseconds(options)
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
