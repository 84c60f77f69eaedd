import { FluxGateError, type ValidationIssue } from '../core/errors.js'
import { rulesInvalid } from './issues.js'

/** The error for invalid options or settings: one line for each of the first issues, and all of them in `errors`. */
export function configInvalid(source: string, errors: readonly ValidationIssue[]): FluxGateError {
  const { message } = rulesInvalid(source, { kept: errors, count: errors.length })
  return new FluxGateError('FLUXGATE_CONFIG_INVALID', message, { errors })
}
