import { FluxGateError } from '../../core/errors.js'

type Test = (value: unknown) => boolean

const isObject: Test = (value) => typeof value === 'object' && value !== null
const isFunction: Test = (value) => typeof value === 'function'
const isText: Test = (value) => typeof value === 'string'
const isWhole =
  (from: number): Test =>
  (value) =>
    Number.isSafeInteger(value) && (value as number) >= from

/** What each option may be, and how that is said to people. */
const kinds: Readonly<Record<string, readonly [Test, string]>> = {
  url: [isText, 'http://host:port or https://host:port'],
  token: [
    (value) => isText(value) && /^[\x21-\x7e]+$/.test(value as string),
    'visible ASCII, which a header can carry',
  ],
  timeoutMs: [(value) => typeof value === 'number' && value > 0 && value < 2 ** 31, 'milliseconds above 0'],
  connectTimeoutMs: [(value) => typeof value === 'number' && value >= 0 && value < 2 ** 31, 'milliseconds from 0'],
  failures: [isWhole(1), 'a whole number from 1'],
  openMs: [(value) => typeof value === 'number' && value >= 0, 'milliseconds from 0'],
  onStoreFailure: [(value) => ['LOCAL', 'ALLOW', 'DENY'].includes(value as string), 'LOCAL, ALLOW or DENY'],
  fallback: [
    (value) => isObject(value) && isFunction((value as { check?: unknown }).check),
    'a Handler, such as a gate',
  ],
  maxConcurrentWaits: [isWhole(0), 'a whole number from 0'],
  headers: [(value) => Array.isArray(value) && value.every(isText), 'a list of names'],
  connections: [isWhole(1), 'a whole number from 1'],
  tls: [isObject, 'an object of options of node:tls'],
  clock: [(value) => isObject(value) && isFunction((value as { now?: unknown }).now), 'an object with now()'],
  onError: [isFunction, 'a function'],
  onStateChange: [isFunction, 'a function'],
}

/** A misspelt option must not silently do nothing. What was found is not shown: it may be a secret. */
export function checkHttpOptions(options: unknown): void {
  if (!isObject(options)) throw invalid('found no options; allowed: an object with url, and others.')
  for (const [name, value] of Object.entries(options as object)) {
    if (value === undefined) continue
    const kind = Object.hasOwn(kinds, name) ? kinds[name] : undefined
    if (kind === undefined) throw invalid(`${name} is not an option; allowed: ${Object.keys(kinds).join(', ')}.`)
    const [test, allowed] = kind
    if (!test(value)) throw invalid(`${name}: found something else; allowed: ${allowed}.`)
  }
  const { onStoreFailure, fallback } = options as { onStoreFailure?: unknown; fallback?: unknown }
  if (onStoreFailure === 'LOCAL' && fallback === undefined)
    throw invalid('onStoreFailure: found LOCAL without a fallback; allowed: LOCAL with one, ALLOW or DENY.')
}

export const invalid = (message: string): FluxGateError =>
  new FluxGateError('FLUXGATE_CONFIG_INVALID', `HttpHandler: ${message}`)
