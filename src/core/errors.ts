/**
 * Everything FluxGate throws. A refusal is not among it: a refusal is a Decision.
 * `docs/reference/errors.md` lists the same codes, and a test holds the two together.
 */
export const errorCodes = {
  FLUXGATE_RULES_INVALID: 'A rule document has mistakes; `errors` lists each with its place.',
  FLUXGATE_RULES_UNREADABLE: 'Rules could not be read from where they are kept, or not be written there.',
  FLUXGATE_RULES_CONFLICT: 'Rules were changed by somebody else in the meantime; read them again and repeat the edit.',
  FLUXGATE_RULE_SET_UNKNOWN: 'There is no rule set of that id to edit.',
  FLUXGATE_RULES_READ_ONLY: 'Rules are kept where they cannot be edited, such as in objects of the program.',
  FLUXGATE_OVERRIDE_INVALID: 'An override has mistakes; `errors` lists each with its place.',
  FLUXGATE_CONFIG_INVALID: 'The configuration has mistakes; `errors` lists each with its place.',
  FLUXGATE_CONFIG_UNREADABLE: 'The configuration file could not be read.',
  FLUXGATE_IDENTITY_UNCONFIGURED: 'A rule counts by a user or an API key, and nothing says where requests have it.',
  FLUXGATE_ARGUMENT_INVALID: 'A function was called with something it cannot take.',
  FLUXGATE_SYNC_UNSUPPORTED: 'consumeSync needs a store that answers without waiting, such as the memory store.',
  FLUXGATE_STORE_FAILED: 'The bucket store answered with an error.',
  FLUXGATE_STORE_MISCONFIGURED: 'The bucket store cannot be used as it is configured, such as with a wrong password.',
  FLUXGATE_STORE_UNREACHABLE: 'There is no connection to the bucket store, so nothing was sent to it.',
  FLUXGATE_STORE_TIMEOUT: 'The bucket store did not answer before its deadline.',
  FLUXGATE_STORE_OPEN: 'The bucket store failed repeatedly, and the circuit breaker is open.',
  FLUXGATE_BUCKET_INVALID: 'What is kept under the name of one bucket is not a bucket; the store itself is fine.',
  FLUXGATE_BUCKET_MOVING: 'One bucket is just being moved to another node of a cluster; the store itself is fine.',
  FLUXGATE_BULK_INPUT_INVALID: 'What is to be loaded cannot be read as what it is said to be.',
  FLUXGATE_BULK_STOPPED: 'A load was stopped before its end, such as by a server that has gone.',
  FLUXGATE_LOCK_TIMEOUT: 'A lock or permit was held by others for as long as the caller wanted to wait.',
  FLUXGATE_LOCK_LOST: 'A lock or permit is no longer held; others may hold it now.',
  FLUXGATE_INDEX_CHANGED: 'A search index was made with other fields, or is being rebuilt.',
  FLUXGATE_CLOSED: 'The limiter or gate was used after close().',
} as const

export type ErrorCode = keyof typeof errorCodes

/** One mistake in a document: where it is, what is wrong and what would be right. */
export interface Mistake {
  readonly path: string
  readonly message: string
}

/** What an error of any origin says. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

interface FluxGateErrorOptions {
  readonly cause?: unknown
  readonly errors?: readonly Mistake[]
  readonly isUnexecuted?: boolean
}

export class FluxGateError extends Error {
  override readonly name = 'FluxGateError'
  readonly code: ErrorCode
  /** Every mistake found, when the error is about a document. */
  readonly errors: readonly Mistake[]
  /** True if the store replied that it did not execute the call. */
  readonly isUnexecuted: boolean

  constructor(code: ErrorCode, message: string, options: FluxGateErrorOptions = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.errors = options.errors ?? []
    this.isUnexecuted = options.isUnexecuted ?? false
  }
}

/** Whether the store is in trouble, or only one bucket in it. */
export const isStoreTrouble = (error: unknown): boolean =>
  !(error instanceof FluxGateError && error.code.startsWith('FLUXGATE_BUCKET_'))

/** True if the call was never sent, so that it has certainly not been executed. */
export const isUnsent = (error: unknown): boolean =>
  error instanceof FluxGateError && error.code === 'FLUXGATE_STORE_UNREACHABLE'
