import type { TObject } from 'typebox'
import { invalidRequest } from './api-problem.js'
import { assertValid } from './validator.js'

/**
 * Parses a query string by its schema. A boolean parameter without a value is true. Unknown parameters are rejected, because a
 * misspelt `key` would otherwise reset a whole rule.
 */
export function parseQuery(text: string, schema: TObject): Record<string, unknown> {
  const query: Record<string, unknown> = {}
  for (const pair of text === '' ? [] : text.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decoded(equals === -1 ? pair : pair.slice(0, equals))
    const known = Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined
    if (known === undefined)
      throw invalidRequest('query', `unknown parameter ${JSON.stringify(name.slice(0, 60))}; ${namesOf(schema)}`)
    if (Object.hasOwn(query, name)) throw invalidRequest(name, 'must not be given twice')
    const type = 'type' in known ? known.type : 'string'
    const value = decoded(equals === -1 ? '' : pair.slice(equals + 1))
    query[name] = (value === '' && type === 'boolean') || converted(value, type)
  }
  assertValid(schema, query, 'query')
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

function namesOf({ properties }: TObject): string {
  const names = Object.keys(properties)
  return names.length === 0 ? 'this route has no parameters' : `allowed: ${names.join(', ')}`
}
