import { type Cidr, inCidr } from '../../core/keys/ip-address.js'
import { compilePathPattern } from '../../core/matching/paths/path-pattern.js'
import { matchesPath } from '../../core/matching/paths/tree-search.js'
import { withHead } from '../../core/rule.js'
import type { EdgeHeaders } from '../../http/edge-request.js'

/** The parts of a request that predicates use. */
export interface RoutedRequest {
  readonly method: string
  /** Normalized, as for rules. */
  readonly path: string
  /** The raw query, without the question mark. */
  readonly query: string
  /** Without a port, in lower case. */
  readonly host: string
  readonly headers: EdgeHeaders
  /** The client IP behind trusted proxies. Computed only if a predicate needs it. */
  clientIp(): string | undefined
}

export type Predicate = (request: RoutedRequest) => boolean

/** Patterns as in rules: letter case is ignored. */
export function pathIs(patterns: readonly string[]): Predicate {
  const compiled = patterns.map((pattern) => compilePathPattern(pattern))
  return ({ path }) => compiled.some((pattern) => matchesPath(pattern, path))
}

/** `GET` includes `HEAD`, as in rules. */
export function methodIs(methods: readonly string[]): Predicate {
  const upper = withHead(methods.map((method) => method.toUpperCase()))
  return ({ method }) => upper.includes(method)
}

/** Labels match like path segments: `*` in `*.example.org` is one label, `**` any number of labels. */
export function hostIs(patterns: readonly string[]): Predicate {
  const compiled = patterns.map((pattern) => compilePathPattern(asPath(pattern.toLowerCase())))
  return ({ host }) => host !== '' && compiled.some((pattern) => matchesPath(pattern, asPath(host)))
}

const asPath = (host: string): string => `/${host.replaceAll('.', '/')}`

/** The header is present and, if there is a pattern, one of its values matches as a whole. */
export function headerIs(name: string, pattern: RegExp | undefined): Predicate {
  const lower = name.toLowerCase()
  return ({ headers }) => {
    const value = headers[lower]
    if (value === undefined) return false
    if (pattern === undefined) return true
    return typeof value === 'string' ? pattern.test(value) : value.some((one) => pattern.test(one))
  }
}

/** The query parameter is present and, if there is a pattern, one of its values matches as a whole. */
export function queryIs(name: string, pattern: RegExp | undefined): Predicate {
  return ({ query }) => {
    if (query === '') return false
    const values = new URLSearchParams(query).getAll(name)
    return pattern === undefined ? values.length > 0 : values.some((value) => pattern.test(value))
  }
}

export function remoteAddressIs(networks: readonly Cidr[]): Predicate {
  return (request) => {
    const ip = request.clientIp()
    return ip !== undefined && networks.some((network) => inCidr(ip, network))
  }
}

/** A regular expression that matches a whole value, as in Spring Cloud Gateway; undefined if `text` is invalid. */
export function wholeMatch(text: string): RegExp | undefined {
  try {
    return new RegExp(`^(?:${text})$`, 's')
  } catch {
    return undefined
  }
}
