import type { JsonSchema, Kind } from '../../validation/kind.js'
import { invalidRequest } from './api-problem.js'
import { assertValid } from './validator.js'

/**
 * Parses a query string. A boolean parameter without a value is true. Unknown parameters are rejected, because a
 * misspelt `key` would otherwise reset a whole rule.
 */
export function parseQuery(text: string, kind: Kind<unknown>): Record<string, unknown> {
  const parameters = kind.schema.properties as Readonly<Record<string, JsonSchema>>
  const query: Record<string, unknown> = {}
  for (const pair of text === '' ? [] : text.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decoded(equals === -1 ? pair : pair.slice(0, equals))
    const known = Object.hasOwn(parameters, name) ? parameters[name] : undefined
    if (known === undefined)
      throw invalidRequest('query', `unknown parameter ${JSON.stringify(name.slice(0, 60))}; ${namesOf(parameters)}`)
    if (Object.hasOwn(query, name)) throw invalidRequest(name, 'must not be given twice')
    const value = decoded(equals === -1 ? '' : pair.slice(equals + 1))
    query[name] = (value === '' && known.type === 'boolean') || converted(value, known.type)
  }
  assertValid(kind, query, 'query')
  return query
}

/** Converts numbers and booleans. Anything else stays a string, which the schema then rejects. */
function converted(value: string, type: unknown): unknown {
  if (type === 'integer' && /^-?\d{1,15}$/.test(value)) return Number(value)
  if (type === 'boolean' && (value === 'true' || value === 'false')) return value === 'true'
  return value
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw invalidRequest('query', 'contains an invalid percent-encoding; use UTF-8')
  }
}

function namesOf(parameters: object): string {
  const names = Object.keys(parameters)
  return names.length === 0 ? 'this route has no parameters' : `allowed: ${names.join(', ')}`
}
