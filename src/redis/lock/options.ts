import { FluxGateError } from '../../core/errors.js'
import { checkRange, longestWaitMs } from '../../core/range.js'

/** Options for all holds of a lock. Each hold can override them. */
export interface HoldOptions {
  /** The lease duration in milliseconds, from 10 to 86 400 000 (one day). Default: 10 000. */
  readonly ttlMs?: number
  /** How long to wait while other owners hold the lock, in milliseconds; 0 means not to wait. Default: 10 000. */
  readonly waitMs?: number
  /** Whether waiting callers are served in the order of their requests. Default: false, which is faster. */
  readonly fair?: boolean
  /** Whether the lease is extended automatically while held. Default: true. */
  readonly watchdog?: boolean
}

/** Options of one hold. */
export interface AcquireOptions extends HoldOptions {
  /** Holds with the same owner share their locks. Default: a random, unique owner. */
  readonly owner?: string
  /** Cancels waiting. In `using`, it also aborts the signal that is passed to the work. */
  readonly signal?: AbortSignal
}

/** Options of `redisLock`. */
export interface LockOptions extends HoldOptions {
  /** The prefix of all keys. Default: `fluxgate`. */
  readonly prefix?: string
  /** The timeout of one Redis call, in milliseconds. Default: a third of the lease, but at most 1000. */
  readonly timeoutMs?: number
}

const longestTtlMs = 86_400_000
const holdNames = ['ttlMs', 'waitMs', 'fair', 'watchdog']
export const acquireNames: readonly string[] = [...holdNames, 'owner', 'signal']
export const lockNames: readonly string[] = [...holdNames, 'prefix', 'timeoutMs']

/** Validates options. Unknown names are rejected, so that a misspelt option is not silently ignored. */
export function checkOptions(what: string, options: LockOptions & AcquireOptions, names: readonly string[]): void {
  if (typeof options !== 'object' || options === null)
    throw invalid(`The options of ${what} must be an object; received ${String(options)}.`)
  for (const name of Object.keys(options))
    if (!names.includes(name))
      throw invalid(`Unknown option ${JSON.stringify(name)} of ${what}. Use one of ${names.join(', ')}.`)
  const { ttlMs, waitMs, timeoutMs, prefix, owner, fair, watchdog, signal } = options
  if (ttlMs !== undefined) checkRange('ttlMs', ttlMs, 10, longestTtlMs)
  if (waitMs !== undefined) checkRange('waitMs', waitMs, 0, longestWaitMs)
  if (timeoutMs !== undefined) checkRange('timeoutMs', timeoutMs, 1, longestTtlMs)
  for (const [name, text] of Object.entries({ prefix, owner }))
    if (text !== undefined && (typeof text !== 'string' || text === ''))
      throw invalid(`${name} must be a non-empty string; received ${String(text)}.`)
  for (const [name, flag] of Object.entries({ fair, watchdog }))
    if (flag !== undefined && typeof flag !== 'boolean')
      throw invalid(`${name} must be true or false; received ${String(flag)}.`)
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw invalid(`signal must be an AbortSignal; received ${String(signal)}.`)
}

export const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
