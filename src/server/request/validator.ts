import { isObject } from '../../validation/fields.js'
import { noIssues } from '../../validation/issues.js'
import { type Kind, readValue, wrongValue } from '../../validation/kind.js'
import { ApiProblem, invalidRequest } from './api-problem.js'

const maxIssues = 50

/** Throws an `ApiProblem` that lists the issues of `value`. `name` is the path of the value itself. */
export function assertValid(kind: Kind<unknown>, value: unknown, name: string): void {
  if (kind.parse(value) !== undefined) return
  if (!isObject(value)) throw invalidRequest(name, wrongValue(value, kind.allowed))
  const issues = noIssues()
  readValue(kind, value, '', issues)
  const errors = issues.kept.slice(0, maxIssues)
  const { path, message } = errors[0] ?? { path: name, message: 'is invalid' }
  throw new ApiProblem('FLUXGATE_REQUEST_INVALID', `${path}: ${message}`, { errors })
}
