import type { TSchema } from 'typebox'
import { Compile } from 'typebox/schema'
import type { ValidationIssue } from '../../core/errors.js'
import { placeOf } from '../../validation/issues.js'
import { ApiProblem } from './api-problem.js'

interface SchemaError {
  readonly keyword: string
  readonly instancePath: string
  readonly message: string
  readonly params: { readonly allowedValues?: readonly unknown[] }
}

interface Compiled {
  Check(value: unknown): boolean
  Errors(value: unknown): [boolean, SchemaError[]]
}

/** Schemas are compiled on first use: a server that only decides needs few of them. */
const compiled = new WeakMap<TSchema, Compiled>()

function validatorOf(schema: TSchema): Compiled {
  const known = compiled.get(schema)
  if (known !== undefined) return known
  const made = Compile(schema) as unknown as Compiled
  compiled.set(schema, made)
  return made
}

const maxIssues = 50

/** Throws an `ApiProblem` that lists all issues of `value`. `name` is the path of the value itself. */
export function assertValid(schema: TSchema, value: unknown, name: string): void {
  const validator = validatorOf(schema)
  if (validator.Check(value)) return
  const errors = issuesOf(validator.Errors(value)[1], name)
  const { path, message } = errors[0] ?? { path: name, message: 'is invalid' }
  throw new ApiProblem('FLUXGATE_REQUEST_INVALID', `${path}: ${message}`, { errors })
}

/** The first issue per path. Further ones usually stem from alternatives that do not match either. */
function issuesOf(errors: readonly SchemaError[], name: string): ValidationIssue[] {
  const byPath = new Map<string, string>()
  for (const error of errors) {
    // Reported for the object; the unknown member has an error of its own.
    if (error.keyword === 'additionalProperties') continue
    const path = placeIn(error.instancePath, name)
    if (!byPath.has(path)) byPath.set(path, messageOf(error))
    if (byPath.size === maxIssues) break
  }
  return [...byPath].map(([path, message]) => ({ path, message }))
}

const messageOf = ({ message, params: { allowedValues } }: SchemaError): string =>
  allowedValues === undefined ? message : `must be one of ${allowedValues.join(', ')}`

/** Converts a JSON pointer into the path notation of rules: `/checks/3/permits` → `checks[3].permits`. */
function placeIn(pointer: string, name: string): string {
  if (pointer === '') return name
  return pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, step) => (/^\d+$/.test(step) && path !== '' ? `${path}[${step}]` : placeOf(path, step)), '')
}
