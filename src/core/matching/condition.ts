import { FluxGateError } from '../errors.js'
import { type Cidr, inCidr, parseCidr } from '../keys/ip-address.js'
import type { RequestContext } from '../request-context.js'
import { type Condition, withHead } from '../rule.js'
import { foldText } from './paths/characters.js'
import type { PathVariables } from './paths/path-pattern.js'
import { compileNamedField, type ReadField, textOf } from './request-field.js'

export type Predicate = (context: RequestContext, variables: PathVariables | undefined) => boolean

/** Compiles all conditions of a rule to one predicate. Returns undefined if there are no conditions. */
export function compileConditions(when: readonly Condition[], caseSensitive = false): Predicate | undefined {
  const [first, ...others] = when.map((condition) => compileCondition(condition, caseSensitive))
  if (!first || others.length === 0) return first
  return (context, variables) => first(context, variables) && others.every((holds) => holds(context, variables))
}

/** Returns a function that reads the field from a request. Returns undefined if the field is unknown or not compared as text. */
export function readerOf(field: string): ReadField | undefined {
  return Object.hasOwn(plainFields, field) ? plainFields[field] : compileNamedField(field)
}

const plainFields: Readonly<Record<string, ReadField>> = {
  userId: ({ userId }) => userId,
  apiKey: ({ apiKey }) => apiKey,
  method: ({ method }) => method?.toUpperCase(),
}

function compileCondition({ field, values }: Condition, caseSensitive: boolean): Predicate {
  if (field === 'clientIp') return compileClientIp(values)
  const read = readerOf(field)
  if (!read)
    throw new FluxGateError(
      'FLUXGATE_RULES_INVALID',
      `A condition of a rule uses the unknown field "${field}". Use attributes.x, header.x, path.x, clientIp, userId, apiKey or method.`,
    )
  const expected = new Set(comparedValues(field, values, caseSensitive))
  const isExpected = (value: unknown): boolean => {
    const text = textOf(value)
    return text !== undefined && expected.has(text)
  }
  return (context, variables) => {
    const value = read(context, variables)
    return Array.isArray(value) ? value.some(isExpected) : isExpected(value)
  }
}

/** Converts the values to the form in requests: path captures are case-folded like the path, and GET includes HEAD. */
function comparedValues(field: string, values: readonly string[], caseSensitive: boolean): readonly string[] {
  if (field === 'method') return withHead(values.map((value) => value.toUpperCase()))
  return field.startsWith('path.') && !caseSensitive ? values.map(foldText) : values
}

/** Values that are neither an address nor a network are compared as text, as IP keys are. */
function compileClientIp(values: readonly string[]): Predicate {
  const networks = values.map(parseCidr).filter((cidr): cidr is Cidr => cidr !== undefined)
  const names = values.filter((value) => parseCidr(value) === undefined)
  return ({ clientIp }) => {
    if (!clientIp) return false
    for (const network of networks) if (inCidr(clientIp, network)) return true
    return names.includes(clientIp)
  }
}
