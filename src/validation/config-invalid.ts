import { FluxGateError, type Mistake } from '../core/errors.js'
import { noMistakes, rulesInvalid } from './issues.js'

export function configInvalid(source: string, errors: readonly Mistake[]): FluxGateError {
  const issues = noMistakes()
  for (const { path, message } of errors) issues.add(path, message)
  return new FluxGateError('FLUXGATE_CONFIG_INVALID', rulesInvalid(source, issues).message, { errors: issues.kept })
}
