import { type Cidr, inCidr } from '../../core/keys/ip-address.js'
import { compilePathPattern } from '../../core/matching/paths/path-pattern.js'
import { matchesPath } from '../../core/matching/paths/path-search.js'
import { withHead } from '../../core/rule.js'
import type { EdgeHeaders } from '../../http/edge-request.js'

/** As much of a request as routes are chosen by. */
export interface RoutedRequest {
  readonly method: string
  /** Normalised, as rules see it. */
  readonly path: string
  /** Behind the question mark, as it was sent. */
  readonly query: string
  /** Without a port, in lower case. */
  readonly host: string
  readonly headers: EdgeHeaders
  /** Of the real client, as far as trusted proxies say; asked only where an address matters. */
  clientIp(): string | undefined
}

export type Predicate = (request: RoutedRequest) => boolean

/** Patterns as in rules, so letter case does not matter. */
export function pathIs(patterns: readonly string[]): Predicate {
  const compiled = patterns.map((pattern) => compilePathPattern(pattern))
  return ({ path }) => compiled.some((pattern) => matchesPath(pattern, path))
}

/** `GET` includes `HEAD`, as in rules. */
export function methodIs(methods: readonly string[]): Predicate {
  const upper = withHead(methods.map((method) => method.toUpperCase()))
  return ({ method }) => upper.includes(method)
}

/** Patterns of labels, as paths are of segments: `*.example.org` is one label more, `**.example.org` any number. */
export function hostIs(patterns: readonly string[]): Predicate {
  const compiled = patterns.map((pattern) => compilePathPattern(asPath(pattern.toLowerCase())))
  return ({ host }) => host !== '' && compiled.some((pattern) => matchesPath(pattern, asPath(host)))
}

const asPath = (host: string): string => `/${host.replaceAll('.', '/')}`

/** The header is there and, if it has to, one of its values matches as a whole. */
export function headerIs(name: string, pattern: RegExp | undefined): Predicate {
  const lower = name.toLowerCase()
  return ({ headers }) => {
    const value = headers[lower]
    if (value === undefined) return false
    if (pattern === undefined) return true
    return typeof value === 'string' ? pattern.test(value) : value.some((one) => pattern.test(one))
  }
}

/** The same for a parameter of the query. */
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

/** Matches a whole value, as the Spring Cloud Gateway does; undefined if it is no regular expression. */
export function wholeMatch(text: string): RegExp | undefined {
  try {
    return new RegExp(`^(?:${text})$`, 's')
  } catch {
    return undefined
  }
}
