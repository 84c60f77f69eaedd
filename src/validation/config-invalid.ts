import { FluxGateError, type ValidationIssue } from '../core/errors.js'
import { noIssues, rulesInvalid } from './issues.js'

/** The error for invalid options or settings: one line for each of the first issues, and all of them in `errors`. */
export function configInvalid(source: string, errors: readonly ValidationIssue[]): FluxGateError {
  const issues = noIssues()
  for (const { path, message } of errors) issues.add(path, message)
  return new FluxGateError('FLUXGATE_CONFIG_INVALID', rulesInvalid(source, issues).message, { errors: issues.kept })
}
