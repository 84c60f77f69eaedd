import { FluxGateError } from '../../core/errors.js'
import { checkRange, longestWaitMs } from '../../core/range.js'

/** What may be said for all holds, and again for one. */
export interface HoldOptions {
  /** How long a lease lasts if nobody prolongs it; default 10 000. */
  readonly ttlMs?: number
  /** How long to wait for those who hold it; default 10 000. 0: not at all. */
  readonly waitMs?: number
  /** Whether those who wait get it in the order of asking; default false, which is faster. */
  readonly fair?: boolean
  /** Whether the lease is prolonged for as long as it is held; default true. */
  readonly watchdog?: boolean
}

export interface AcquireOptions extends HoldOptions {
  /** Whoever names the same owner shares its locks. Default: a random one, which nobody shares. */
  readonly owner?: string
  /** Ends the waiting. In `using` it also aborts the signal that the work gets. */
  readonly signal?: AbortSignal
}

export interface LockOptions extends HoldOptions {
  /** What the names of all keys begin with; default `fluxgate`. */
  readonly prefix?: string
  /** How long one call to Redis may take; default a third of the lease, and at most a second. */
  readonly timeoutMs?: number
}

const longestTtlMs = 86_400_000
const holdNames = ['ttlMs', 'waitMs', 'fair', 'watchdog']
export const acquireNames: readonly string[] = [...holdNames, 'owner', 'signal']
export const lockNames: readonly string[] = [...holdNames, 'prefix', 'timeoutMs']

/** A misspelt option must not silently do nothing. */
export function checkOptions(what: string, options: LockOptions & AcquireOptions, names: readonly string[]): void {
  if (typeof options !== 'object' || options === null)
    throw invalid(`${what} takes an object of options, found ${String(options)}.`)
  for (const name of Object.keys(options))
    if (!names.includes(name))
      throw invalid(`${what} has no option ${JSON.stringify(name)}; allowed: ${names.join(', ')}.`)
  const { ttlMs, waitMs, timeoutMs, prefix, owner, fair, watchdog, signal } = options
  if (ttlMs !== undefined) checkRange('ttlMs', ttlMs, 10, longestTtlMs)
  if (waitMs !== undefined) checkRange('waitMs', waitMs, 0, longestWaitMs)
  if (timeoutMs !== undefined) checkRange('timeoutMs', timeoutMs, 1, longestTtlMs)
  for (const [name, text] of Object.entries({ prefix, owner }))
    if (text !== undefined && (typeof text !== 'string' || text === ''))
      throw invalid(`${name} must be text that is not empty, found ${String(text)}.`)
  for (const [name, flag] of Object.entries({ fair, watchdog }))
    if (flag !== undefined && typeof flag !== 'boolean')
      throw invalid(`${name} must be true or false, found ${String(flag)}.`)
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw invalid(`signal must be an AbortSignal, found ${String(signal)}.`)
}

export const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
