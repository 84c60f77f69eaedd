import { checkHeaders } from '../decision/check-request.js'
import type { RequestContext } from '../request-context.js'
import type { PathVariables } from './paths/path-pattern.js'

/** Reads one field of a request. Returns the value as the caller passed it, or undefined if it is missing. */
export type ReadField = (context: RequestContext, variables: PathVariables | undefined) => unknown

/**
 * Compiles the fields that both conditions and keys accept: `attributes.x`, `header.x`, `path.x`. Returns undefined for any
 * other name. Reads own properties only, so that no field name reaches inherited members.
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

/** Converts a primitive value to text. Returns undefined for objects, arrays and missing values. */
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

/** `user.tier` is the attribute with exactly this name if there is one, otherwise the `tier` of `user`. */
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

/** Contexts from HTTP requests have lower-case header names. Contexts that a caller builds may not. */
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
