import { FluxGateError } from '../core/errors.js'
import { describeIssue } from '../validation/issues.js'

/** Invalid command line usage. The message is printed as is, without a stack trace. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** A failed request to a FluxGate server. The message is printed as is, without a stack trace. */
export class ServerError extends Error {
  override readonly name = 'ServerError'
  /** HTTP status; 0 if there was no response. */
  readonly status: number

  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}

/** The message to print when a command fails. Stack traces are included only with `DEBUG=fluxgate`. */
export function describeFailure(error: unknown, environment = process.env): string {
  const wantsStack = environment.DEBUG?.split(',').some((name) => ['*', 'fluxgate'].includes(name.trim())) ?? false
  const stack = wantsStack && error instanceof Error ? `\n${error.stack ?? ''}` : ''
  if (error instanceof UsageError || error instanceof ServerError) return error.message
  if (error instanceof FluxGateError) return `${withIssues(error)}${stack}`
  const message = error instanceof Error ? error.message : String(error)
  return `Unexpected error: ${message.split('\n')[0]}${stack || ' (set DEBUG=fluxgate for the stack trace)'}`
}

function withIssues({ message, errors }: FluxGateError): string {
  const missing = errors.filter((issue) => !message.includes(issue.message))
  // A message that already lists its first issues is complete: it limits their number on purpose.
  if (missing.length < errors.length) return message
  return [message, ...missing.map((issue) => `  ${describeIssue(issue)}`)].join('\n')
}
