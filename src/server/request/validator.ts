import type { TSchema } from 'typebox'
import { Compile } from 'typebox/schema'
import type { Mistake } from '../../core/errors.js'
import { placeOf } from '../../validation/issues.js'
import { ApiProblem } from './api-problem.js'

interface Found {
  readonly keyword: string
  readonly instancePath: string
  readonly message: string
  readonly params: { readonly allowedValues?: readonly unknown[] }
}

interface Compiled {
  Check(value: unknown): boolean
  Errors(value: unknown): [boolean, Found[]]
}

/** Compiled when first needed: a server that is only asked for decisions has no use for the others. */
const compiled = new WeakMap<TSchema, Compiled>()

function validatorOf(schema: TSchema): Compiled {
  const known = compiled.get(schema)
  if (known !== undefined) return known
  const made = Compile(schema) as unknown as Compiled
  compiled.set(schema, made)
  return made
}

const maxMistakes = 50

/** Throws a problem that lists what is wrong with `value`, whose place is called `name`. */
export function assertValid(schema: TSchema, value: unknown, name: string): void {
  const validator = validatorOf(schema)
  if (validator.Check(value)) return
  const errors = mistakesOf(validator.Errors(value)[1], name)
  const { path, message } = errors[0] ?? { path: name, message: 'is not what is allowed' }
  throw new ApiProblem('FLUXGATE_REQUEST_INVALID', `${path}: ${message}`, { errors })
}

/** The first mistake of each place: alternatives that do not fit either are no news. */
function mistakesOf(found: readonly Found[], name: string): Mistake[] {
  const byPlace = new Map<string, string>()
  for (const one of found) {
    // Of the whole; the member that does not fit has a mistake of its own.
    if (one.keyword === 'additionalProperties') continue
    const path = placeIn(one.instancePath, name)
    if (!byPlace.has(path)) byPlace.set(path, messageOf(one))
    if (byPlace.size === maxMistakes) break
  }
  return [...byPlace].map(([path, message]) => ({ path, message }))
}

const messageOf = ({ message, params: { allowedValues } }: Found): string =>
  allowedValues === undefined ? message : `must be one of ${allowedValues.join(', ')}`

/** `/checks/3/permits` → `checks[3].permits`, as places are written in rules. */
function placeIn(pointer: string, name: string): string {
  if (pointer === '') return name
  return pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce((path, step) => (/^\d+$/.test(step) && path !== '' ? `${path}[${step}]` : placeOf(path, step)), '')
}
