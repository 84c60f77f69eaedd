import { maxTimerMs } from '../../core/clock.js'
import { configInvalid } from '../../validation/config-invalid.js'
import { type Kind, secret } from '../../validation/kind.js'
import { callback, codeValue, oneOf, text, textMatching, warningLogger, wholeNumber } from '../../validation/kinds.js'
import { checkOptions } from '../../validation/options.js'
import type { HttpHandlerOptions } from './http-handler.js'

const source = 'Options of HttpHandler'

const hasMethod = (value: unknown, name: string): boolean =>
  typeof value === 'object' && value !== null && typeof (value as Record<string, unknown>)[name] === 'function'

const milliseconds = (allowed: string, isValid: (value: number) => boolean): Kind<number> =>
  codeValue(allowed, (value) => typeof value === 'number' && isValid(value))

const kinds: Readonly<Record<keyof HttpHandlerOptions, Kind<unknown>>> = {
  url: secret({ ...text, allowed: 'http://host:port or https://host:port' }),
  token: secret(textMatching('printable ASCII characters without spaces', /^[!-~]+$/)),
  timeoutMs: milliseconds('a number of milliseconds greater than 0', (value) => value > 0 && value <= maxTimerMs),
  connectTimeoutMs: milliseconds('a number of milliseconds from 0', (value) => value >= 0 && value <= maxTimerMs),
  failures: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  openMs: milliseconds('a number of milliseconds from 0', (value) => value >= 0),
  onStoreFailure: oneOf(['LOCAL', 'ALLOW', 'DENY'] as const),
  fallback: codeValue('a Handler, such as a gate', (value) => hasMethod(value, 'check')),
  maxConcurrentWaits: wholeNumber(0, Number.MAX_SAFE_INTEGER),
  headers: codeValue(
    'a list of header names',
    (value) => Array.isArray(value) && value.every((name) => typeof name === 'string'),
  ),
  connections: wholeNumber(1, Number.MAX_SAFE_INTEGER),
  tls: codeValue('an object of options of node:tls', (value) => typeof value === 'object' && value !== null),
  clock: codeValue('an object with now()', (value) => hasMethod(value, 'now')),
  logger: warningLogger,
  onError: callback,
  onStateChange: callback,
}

/** Throws for unknown and invalid options instead of ignoring them. */
export function checkHttpOptions(options: unknown): void {
  checkOptions(source, options, kinds, 'an object with url')
  const { onStoreFailure, fallback } = options as { onStoreFailure?: unknown; fallback?: unknown }
  if (onStoreFailure === 'LOCAL' && fallback === undefined)
    throw invalid('onStoreFailure', 'must be ALLOW or DENY without a fallback; received LOCAL')
}

export const invalid = (path: string, message: string): Error => configInvalid(source, [{ path, message }])
