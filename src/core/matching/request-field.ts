import { checkHeaders } from '../decision/check-request.js'
import type { RequestContext } from '../request-context.js'
import type { PathVariables } from './paths/path-pattern.js'

/** Reads one part of a request. The value is as the caller gave it; undefined when the request has none. */
export type ReadField = (context: RequestContext, variables: PathVariables | undefined) => unknown

/**
 * The part of the field language that conditions and keys share: `attributes.x`, `header.x`, `path.x`. Undefined for
 * any other name. Only own properties count, so no name reaches what an object inherits.
 */
export function compileNamedField(field: string): ReadField | undefined {
  const dot = field.indexOf('.')
  const name = field.slice(dot + 1)
  if (dot === -1 || name === '') return undefined
  switch (field.slice(0, dot)) {
    case 'attributes':
      return attributeReader(name)
    case 'header':
      return headerReader(name.toLowerCase())
    case 'path':
      return (_, variables) => ownProperty(variables, name)
    default:
      return undefined
  }
}

/** What can be compared or counted as text. Objects and lists cannot. */
export function textOf(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return value
    case 'number':
    case 'boolean':
    case 'bigint':
      return String(value)
    default:
      return undefined
  }
}

/** A key spelt with its dots comes first; then `user.tier` is the `tier` of `user`. */
function attributeReader(name: string): ReadField {
  if (!name.includes('.')) return ({ attributes }) => ownProperty(attributes, name)
  const steps = name.split('.')
  return ({ attributes }) => {
    if (attributes && Object.hasOwn(attributes, name)) return attributes[name]
    let value: unknown = attributes
    for (const step of steps) value = ownProperty(value, step)
    return value
  }
}

/** Contexts made from HTTP requests have lower-case names; those written by hand may not. */
function headerReader(name: string): ReadField {
  return ({ headers }) => {
    if (!headers) return undefined
    if (Object.hasOwn(headers, name)) return headers[name]
    for (const key in headers) {
      if (key.length === name.length && key.toLowerCase() === name) return ownProperty(headers, key)
    }
    checkHeaders(headers)
    return undefined
  }
}

function ownProperty(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined
}
