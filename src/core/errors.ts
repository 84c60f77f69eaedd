/**
 * All error codes of FluxGate. A rejected request is not an error: it is a Decision.
 * A test keeps `docs/reference/errors.md` in sync with these codes.
 */
export const errorCodes = {
  FLUXGATE_RULES_INVALID: 'A rule document is invalid; `errors` lists every issue with its path.',
  FLUXGATE_RULES_UNREADABLE: 'The rules could not be read or written.',
  FLUXGATE_RULES_CONFLICT: 'The rules were changed concurrently. Read them again and repeat the edit.',
  FLUXGATE_RULE_SET_UNKNOWN: 'There is no rule set with this id.',
  FLUXGATE_CANDIDATE_UNKNOWN: 'The rule set has no candidate.',
  FLUXGATE_RULES_READ_ONLY: 'The rules cannot be edited, because they are read-only or defined in code.',
  FLUXGATE_OVERRIDE_INVALID: 'An override is invalid; `errors` lists every issue with its path.',
  FLUXGATE_BAN_INVALID: 'A ban that is set by hand is invalid; `errors` lists every issue with its path.',
  FLUXGATE_CONFIG_INVALID: 'The configuration is invalid; `errors` lists every issue with its path.',
  FLUXGATE_CONFIG_UNREADABLE: 'The configuration file could not be read.',
  FLUXGATE_IDENTITY_UNCONFIGURED: 'A rule needs a user id or an API key, but no source for it is configured.',
  FLUXGATE_ARGUMENT_INVALID: 'A function was called with an invalid argument.',
  FLUXGATE_RUNTIME_UNSUPPORTED: 'The function needs Node.js and is not available in edge runtimes and browsers.',
  FLUXGATE_COST_UNKNOWN: 'A check has a cost that no rule of its rule set charges.',
  FLUXGATE_RESERVATION_UNKNOWN:
    'There is no reservation with this id: its request was rejected, or it expired long ago.',
  FLUXGATE_RESERVATION_EXPIRED: 'The reservation was not settled within its `ttlMs`.',
  FLUXGATE_RESERVATION_UNSUPPORTED: 'A rule that applies, or the bucket store, does not support reservations.',
  FLUXGATE_RESERVATION_LIMIT: 'A key, or the store, has too many open reservations.',
  FLUXGATE_SYNC_UNSUPPORTED: 'consumeSync needs a store that decides synchronously, such as the memory store.',
  FLUXGATE_STORE_FAILED: 'The bucket store returned an error.',
  FLUXGATE_STORE_MISCONFIGURED: 'The bucket store rejects the configured connection, such as a wrong password.',
  FLUXGATE_STORE_UNREACHABLE: 'There is no connection to the bucket store, so nothing was sent to it.',
  FLUXGATE_STORE_TIMEOUT: 'The bucket store did not reply within the timeout.',
  FLUXGATE_STORE_OPEN: 'The bucket store failed repeatedly, and the circuit breaker is open.',
  FLUXGATE_BUCKET_INVALID: 'The key of one bucket holds a value that is not a bucket; other buckets are not affected.',
  FLUXGATE_BUCKET_MOVING: 'One bucket is being moved to another cluster node; other buckets are not affected.',
  FLUXGATE_BULK_INPUT_INVALID: 'The bulk input does not have the declared format.',
  FLUXGATE_BULK_STOPPED: 'A bulk load stopped before its end, for example because the server disconnected.',
  FLUXGATE_LOCK_TIMEOUT: 'A lock or permit could not be acquired within the wait time.',
  FLUXGATE_LOCK_LOST: 'A lock or permit is no longer held; another client may hold it.',
  FLUXGATE_INDEX_CHANGED: 'A search index was created with other fields, or is being rebuilt.',
  FLUXGATE_CLOSED: 'The limiter or gate was used after close().',
} as const

/** A stable error code, such as `FLUXGATE_RULES_INVALID`. */
export type ErrorCode = keyof typeof errorCodes

/** One validation issue in a document: the path of the value, and what is wrong and expected there. */
export interface ValidationIssue {
  /** Where the value is, such as `rules[2].bands[0].capacity`. */
  readonly path: string
  /** The problem and the expected value. */
  readonly message: string
  /** The line in the file, from 1. Absent if the document is not a file. */
  readonly line?: number
  /** The column in the line, from 1. */
  readonly column?: number
}

/** The message of an error of any type. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

interface FluxGateErrorOptions {
  readonly cause?: unknown
  readonly errors?: readonly ValidationIssue[]
  readonly isUnexecuted?: boolean
}

/**
 * The class of all errors that FluxGate throws. Compare `code`, which is stable; `message` may change. `cause` holds the
 * underlying error, if there is one.
 */
export class FluxGateError extends Error {
  /** Always `FluxGateError`. */
  override readonly name = 'FluxGateError'
  /** Identifies the kind of error. Codes are stable; messages are not. */
  readonly code: ErrorCode
  /** All validation issues, if the error is about a document; otherwise empty. */
  readonly errors: readonly ValidationIssue[]
  /** True if the store replied that it did not execute the call. */
  readonly isUnexecuted: boolean

  constructor(code: ErrorCode, message: string, options: FluxGateErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.errors = options.errors ?? []
    this.isUnexecuted = options.isUnexecuted ?? false
  }
}

/** False if the error concerns a single bucket rather than the store. */
export const isStoreFailure = (error: unknown): boolean =>
  !(error instanceof FluxGateError && error.code.startsWith('FLUXGATE_BUCKET_'))

/** True if the call was never sent, so that the store cannot have executed it. */
export const isUnsent = (error: unknown): boolean =>
  error instanceof FluxGateError && error.code === 'FLUXGATE_STORE_UNREACHABLE'

const maxFoundLength = 60

/** Describes a value in an error message. The text is one line, bounded, and free of terminal control characters. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return quoted(value)
  if (value === undefined) return 'nothing'
  if (value === null || typeof value === 'boolean' || typeof value === 'number') return String(value)
  if (Array.isArray(value))
    return value.length === 0 ? 'an empty list' : `a list of ${value.length} ${value.length === 1 ? 'item' : 'items'}`
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

export function quoted(text: string): string {
  const shown = text.length > maxFoundLength ? `${text.slice(0, maxFoundLength)}…` : text
  return printable(JSON.stringify(shown))
}

/** Escapes invisible characters: control characters, line separators and marks that change the text direction. */
export function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
