import { FluxGateError } from '../errors.js'
import { type Cidr, inCidr, parseCidr } from '../keys/ip-address.js'
import type { RequestContext } from '../request-context.js'
import { type Condition, withHead } from '../rule.js'
import { foldText } from './paths/characters.js'
import type { PathVariables } from './paths/path-pattern.js'
import { compileNamedField, type ReadField, textOf } from './request-field.js'

export type Predicate = (context: RequestContext, variables: PathVariables | undefined) => boolean

/** All of a rule's conditions as one question; undefined when there is nothing to ask. */
export function compileConditions(when: readonly Condition[], caseSensitive = false): Predicate | undefined {
  const [first, ...others] = when.map((condition) => compileCondition(condition, caseSensitive))
  if (!first || others.length === 0) return first
  return (context, variables) => first(context, variables) && others.every((holds) => holds(context, variables))
}

/** What a condition compares as text, or undefined if the field is unknown or is not compared as text. */
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
    throw new FluxGateError('FLUXGATE_RULES_INVALID', `A condition asks about "${field}", which no request has.`)
  const wanted = new Set(comparedValues(field, values, caseSensitive))
  const isWanted = (value: unknown): boolean => {
    const text = textOf(value)
    return text !== undefined && wanted.has(text)
  }
  return (context, variables) => {
    const value = read(context, variables)
    return Array.isArray(value) ? value.some(isWanted) : isWanted(value)
  }
}

/** As a request has them: what a path captured is folded like the path, and a limit on GET is one on HEAD too. */
function comparedValues(field: string, values: readonly string[], caseSensitive: boolean): readonly string[] {
  if (field === 'method') return withHead(values.map((value) => value.toUpperCase()))
  return field.startsWith('path.') && !caseSensitive ? values.map(foldText) : values
}

/** What is neither an address nor a network is compared as it stands, like the identity of such a caller. */
function compileClientIp(values: readonly string[]): Predicate {
  const networks = values.map(parseCidr).filter((cidr): cidr is Cidr => cidr !== undefined)
  const names = values.filter((value) => parseCidr(value) === undefined)
  return ({ clientIp }) => {
    if (!clientIp) return false
    for (const network of networks) if (inCidr(clientIp, network)) return true
    return names.includes(clientIp)
  }
}
