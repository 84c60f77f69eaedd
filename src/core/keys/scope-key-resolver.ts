import { FluxGateError, type Mistake } from '../errors.js'
import type { KeyResolver } from '../key-resolver.js'
import { normalisePath } from '../matching/paths/normalise-path.js'
import { compileNamedField, textOf } from '../matching/request-field.js'
import type { MatchedContext } from '../request-context.js'
import type { Rule, RuleSet } from '../rule.js'
import { ipIdentity } from './ip-address.js'
import { joinKeyParts } from './key-parts.js'

/** A resolver as users write it: the interface, or just its one function. */
export type NamedResolver = KeyResolver | KeyResolver['resolve']

/** By the name that rules call them in `keyResolver`. */
export type NamedResolvers = Readonly<Record<string, NamedResolver>> | ReadonlyMap<string, NamedResolver>

export interface ScopeKeyOptions {
  readonly resolvers?: NamedResolvers | undefined
  /** How many bits of an IPv6 address make one caller; 56 unless said otherwise. */
  readonly ipv6Prefix?: number | undefined
  /** Of the rule's set. */
  readonly caseSensitive?: boolean | undefined
}

/** Whom a request counts against under one rule. Undefined, never empty, when the request has no such identity. */
export type KeyOf = (context: MatchedContext) => string | undefined

/** Whom a rule counts, as its scope says. Work that depends on the rule alone is done once. */
export function compileKey(rule: Rule, options: ScopeKeyOptions = {}): KeyOf {
  switch (rule.limitScope) {
    case 'GLOBAL':
      return () => 'global'
    case 'COMPOSITE':
      return compileComposite(rule, options)
    case 'CUSTOM':
      return rule.keyResolver === undefined
        ? compileField(rule, rule.keyField ?? '', options)
        : compileNamed(rule, rule.keyResolver, options)
    default:
      return compileField(rule, rule.limitScope, options)
  }
}

/** Every rule that names a resolver nobody registered, so that loading can refuse it. */
export function unknownResolvers(ruleSets: readonly RuleSet[], resolvers: NamedResolvers | undefined): Mistake[] {
  const mistakes: Mistake[] = []
  for (const [set, { rules }] of ruleSets.entries()) {
    for (const [index, { limitScope, keyResolver }] of rules.entries()) {
      if (limitScope !== 'CUSTOM' || keyResolver === undefined || findResolver(resolvers, keyResolver)) continue
      const message = `no key resolver "${keyResolver}" is registered; ${knownNames(resolvers)}`
      mistakes.push({ path: `ruleSets[${set}].rules[${index}].keyResolver`, message })
    }
  }
  return mistakes
}

function knownNames(resolvers: NamedResolvers | undefined): string {
  const names = resolvers instanceof Map ? [...resolvers.keys()] : Object.keys(resolvers ?? {})
  return names.length === 0 ? 'there is none' : `there is ${names.map((name) => `"${name}"`).join(', ')}`
}

/** One missing part makes the whole key missing: half an identity is somebody else's. */
function compileComposite(rule: Rule, options: ScopeKeyOptions): KeyOf {
  const fields = rule.compositeKeyFields.map((field) => compileField(rule, field, options))
  return (context) => {
    const parts: string[] = []
    for (const read of fields) {
      const part = read(context)
      if (part === undefined) return undefined
      parts.push(part)
    }
    return parts.length === 0 ? undefined : joinKeyParts(parts)
  }
}

function compileNamed(rule: Rule, name: string, { resolvers }: ScopeKeyOptions): KeyOf {
  const resolver = findResolver(resolvers, name)
  if (!resolver) throw invalid(rule, `key resolver "${name}", which is not registered`)
  return typeof resolver === 'function'
    ? (context) => identity(resolver(rule, context))
    : (context) => identity(resolver.resolve(rule, context))
}

function findResolver(resolvers: NamedResolvers | undefined, name: string): NamedResolver | undefined {
  if (resolvers instanceof Map) return resolvers.get(name)
  const record = (resolvers ?? {}) as Readonly<Record<string, NamedResolver>>
  return Object.hasOwn(record, name) ? record[name] : undefined
}

function compileField(rule: Rule, field: string, options: ScopeKeyOptions): KeyOf {
  const read = keyField(rule, field, options)
  if (!read) throw invalid(rule, `key field "${field}", which no request has`)
  return read
}

function keyField({ methods }: Rule, field: string, { ipv6Prefix, caseSensitive }: ScopeKeyOptions): KeyOf | undefined {
  switch (field) {
    case 'IP':
      return ({ clientIp }) => {
        const ip = identity(clientIp)
        return ip === undefined ? undefined : ipIdentity(ip, ipv6Prefix)
      }
    case 'USER_ID':
      return ({ userId }) => identity(userId)
    case 'API_KEY':
      return ({ apiKey }) => identity(apiKey)
    case 'METHOD':
      return compileMethod(methods.includes('HEAD') && !methods.includes('GET'))
    case 'PATH':
      return ({ path, reading }) => reading ?? normalisePath(path, caseSensitive)
  }
  const read = compileNamedField(field)
  if (!read) return undefined
  return (context) => {
    const value = read(context, context.pathVariables)
    // A header sent several times means the same as its values in one line.
    return identity(field.startsWith('header.') && Array.isArray(value) ? value.join(', ') : value)
  }
}

/** HEAD counts as GET, as in the `method` of a rule, unless the rule is for HEAD alone. */
function compileMethod(tellsHead: boolean): KeyOf {
  return ({ method }) => {
    const name = identity(method)?.toUpperCase()
    return name === 'HEAD' && !tellsHead ? 'GET' : name
  }
}

/** Nobody is called the empty string. */
const identity = (value: unknown): string | undefined => textOf(value) || undefined

function invalid(rule: Rule, what: string): FluxGateError {
  return new FluxGateError('FLUXGATE_RULES_INVALID', `Rule "${rule.id}" counts by the ${what}.`)
}
