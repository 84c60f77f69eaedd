import { FluxGateError, type Mistake } from '../core/errors.js'
import { noMistakes, rulesInvalid } from './issues.js'

export function configInvalid(source: string, errors: readonly Mistake[]): FluxGateError {
  const mistakes = noMistakes()
  for (const { path, message } of errors) mistakes.add(path, message)
  return new FluxGateError('FLUXGATE_CONFIG_INVALID', rulesInvalid(source, mistakes).message, { errors: mistakes.kept })
}
