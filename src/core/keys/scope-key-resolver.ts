import type { KeyResolver } from '../contracts/key-resolver.js'
import { FluxGateError, type ValidationIssue } from '../errors.js'
import { normalisePath } from '../matching/paths/normalise-path.js'
import { compileNamedField, textOf } from '../matching/request-field.js'
import type { MatchedContext } from '../request-context.js'
import type { Rule, RuleSet } from '../rule.js'
import { ipIdentity } from './ip-address.js'
import { joinKeyParts } from './key-parts.js'

/** A key resolver: an object with `resolve`, or just the function. */
export type NamedResolver = KeyResolver | KeyResolver['resolve']

/** Key resolvers by the name that rules use in `keyResolver`. */
export type NamedResolvers = Readonly<Record<string, NamedResolver>> | ReadonlyMap<string, NamedResolver>

export interface ScopeKeyOptions {
  readonly resolvers?: NamedResolvers | undefined
  /** The prefix length that identifies one IPv6 client. Default 56. */
  readonly ipv6Prefix?: number | undefined
  /** `caseSensitive` of the rule set. */
  readonly caseSensitive?: boolean | undefined
}

/** Extracts the key of a request under one rule. Returns undefined, never an empty string, if the request has no key. */
export type KeyOf = (context: MatchedContext) => string | undefined

/** Compiles the key extraction of a rule from its scope, so that work that depends only on the rule is done once. */
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

/** Lists the rules whose key resolver is not registered, so that such rules are rejected when they are loaded. */
export function unknownResolvers(
  ruleSets: readonly RuleSet[],
  resolvers: NamedResolvers | undefined,
): ValidationIssue[] {
  const issues: ValidationIssue[] = []
  for (const [set, { rules }] of ruleSets.entries()) {
    for (let index = 0; index < rules.length; index++) {
      const { limitScope, keyResolver } = rules[index] as Rule
      if (limitScope !== 'CUSTOM' || keyResolver === undefined || findResolver(resolvers, keyResolver)) continue
      const message = `key resolver "${keyResolver}" is not registered; ${registeredNames(resolvers)}`
      issues.push({ path: `ruleSets[${set}].rules[${index}].keyResolver`, message })
    }
  }
  return issues
}

function registeredNames(resolvers: NamedResolvers | undefined): string {
  const names = resolvers instanceof Map ? [...resolvers.keys()] : Object.keys(resolvers ?? {})
  return names.length === 0
    ? 'no resolvers are registered'
    : `registered: ${names.map((name) => `"${name}"`).join(', ')}`
}

/** If one part is missing, the whole key is missing, because a partial key could be that of another client. */
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
  if (!resolver) throw invalid(rule, `key resolver "${name}". Register it in \`keyResolvers\``)
  return typeof resolver === 'function'
    ? (context) => keyText(resolver(rule, context))
    : (context) => keyText(resolver.resolve(rule, context))
}

function findResolver(resolvers: NamedResolvers | undefined, name: string): NamedResolver | undefined {
  if (resolvers instanceof Map) return resolvers.get(name)
  const record = (resolvers ?? {}) as Readonly<Record<string, NamedResolver>>
  return Object.hasOwn(record, name) ? record[name] : undefined
}

function compileField(rule: Rule, field: string, options: ScopeKeyOptions): KeyOf {
  const read = keyField(rule, field, options)
  if (!read)
    throw invalid(
      rule,
      `key field "${field}". Use IP, USER_ID, API_KEY, METHOD, PATH, attributes.x, header.x or path.x`,
    )
  return read
}

function keyField({ methods }: Rule, field: string, { ipv6Prefix, caseSensitive }: ScopeKeyOptions): KeyOf | undefined {
  switch (field) {
    case 'IP':
      return ({ clientIp }) => {
        const ip = keyText(clientIp)
        return ip?.includes(':') ? ipIdentity(ip, ipv6Prefix) : ip
      }
    case 'USER_ID':
      return ({ userId }) => keyText(userId)
    case 'API_KEY':
      return ({ apiKey }) => keyText(apiKey)
    case 'METHOD':
      return compileMethod(methods.includes('HEAD') && !methods.includes('GET'))
    case 'PATH':
      return ({ path, reading }) => reading ?? normalisePath(path, caseSensitive)
  }
  const read = compileNamedField(field)
  if (!read) return undefined
  return (context) => {
    const value = read(context, context.pathVariables)
    // Repeated headers are equivalent to one comma-separated header.
    return keyText(field.startsWith('header.') && Array.isArray(value) ? value.join(', ') : value)
  }
}

/** HEAD counts as GET, as in the `method` of a rule, unless the rule applies to HEAD only. */
function compileMethod(keepsHead: boolean): KeyOf {
  return ({ method }) => {
    const name = keyText(method)?.toUpperCase()
    return name === 'HEAD' && !keepsHead ? 'GET' : name
  }
}

/** An empty string is a missing key. */
const keyText = (value: unknown): string | undefined => (typeof value === 'string' ? value : textOf(value)) || undefined

function invalid(rule: Rule, what: string): FluxGateError {
  return new FluxGateError('FLUXGATE_RULES_INVALID', `Rule "${rule.id}" uses the unknown ${what}.`)
}
