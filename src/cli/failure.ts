import { FluxGateError } from '../core/errors.js'

/** Told to a person as it is: the command line asks for something that cannot be done. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Told to a person as it is: a server that was asked did not do it. */
export class ServerError extends Error {
  override readonly name = 'ServerError'
  /** 0 where there was no answer. */
  readonly status: number

  constructor(message: string, status: number) {
    super(message)
    this.status = status
  }
}

/** What to print when a command fails. Of an error that nobody foresaw the stack helps, but only those who ask. */
export function describeFailure(error: unknown, environment = process.env): string {
  const wantsStack = environment.DEBUG?.split(',').some((name) => ['*', 'fluxgate'].includes(name.trim())) ?? false
  const stack = wantsStack && error instanceof Error ? `\n${error.stack ?? ''}` : ''
  if (error instanceof UsageError || error instanceof ServerError) return error.message
  if (error instanceof FluxGateError) return `${withMistakes(error)}${stack}`
  const message = error instanceof Error ? error.message : String(error)
  return `Unexpected: ${message.split('\n')[0]}${stack || ' (DEBUG=fluxgate shows where)'}`
}

function withMistakes({ message, errors }: FluxGateError): string {
  const missing = errors.filter((mistake) => !message.includes(mistake.message))
  // A message that lists its first mistakes has already decided how many are worth reading.
  if (missing.length < errors.length) return message
  return [message, ...missing.map((mistake) => `  ${mistake.path}: ${mistake.message}`)].join('\n')
}
