import { FluxGateError } from '../core/errors.js'
import { configInvalid } from './config-invalid.js'
import { noIssues } from './issues.js'
import { type Kind, type Kinds, readValue, wrongValue } from './kind.js'
import { object } from './structures.js'

/**
 * Validates options given in code. Unknown options throw instead of being ignored.
 *
 * @param source names the options in the message, such as `Options of redisStore`
 * @throws FluxGateError `FLUXGATE_CONFIG_INVALID`, with every issue in `errors`
 */
export function checkOptions(source: string, options: unknown, kinds: Kinds, allowed = 'an object of options'): void {
  const issues = noIssues()
  readValue(object({}, kinds, { allowed }), options, '', issues)
  if (issues.count > 0) throw configInvalid(source, issues.kept)
}

/**
 * Validates an argument of a call and returns it.
 *
 * @param name names the argument in the message, such as `options`
 * @throws FluxGateError `FLUXGATE_ARGUMENT_INVALID`: the message describes the first issue, `errors` has all of them
 */
export function checkArgument<T>(name: string, value: unknown, kind: Kind<T>): T {
  const issues = noIssues()
  const result = readValue(kind, value, name, issues)
  const [issue] = issues.kept
  if (issue === undefined) return result as T
  const { path, message } = issue
  const text = message.startsWith('must ') ? `${path} ${message}.` : `${path}: ${message}`
  throw new FluxGateError('FLUXGATE_ARGUMENT_INVALID', text, { errors: issues.kept })
}

/** The error for an argument whose validity depends on other arguments. */
export const argumentInvalid = (name: string, value: unknown, allowed: string): FluxGateError =>
  new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `${name} ${wrongValue(value, allowed)}.`)
