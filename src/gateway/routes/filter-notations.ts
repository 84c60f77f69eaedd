import type { HeaderChange } from './header-change.js'
import { changeableHeader, headerValue, pathExpression, pathReplacement, segmentCount } from './kinds.js'
import { type RouteLimit, rateLimiterKinds, readRateLimiter } from './limit.js'
import { type Notation, type Notations, notation, pair, single } from './notation.js'
import { type PathChange, rewritePath, stripPrefix } from './path-change.js'

/** The effect of a filter. */
export type Filter =
  | { readonly kind: 'LIMIT'; readonly limit: RouteLimit }
  | { readonly kind: 'PATH'; readonly change: PathChange }
  | { readonly kind: 'REQUEST' | 'RESPONSE'; readonly change: HeaderChange }
  | { readonly kind: 'PRESERVE_HOST' }

/** Filters in the notation of Spring Cloud Gateway. */
export const filterNotations: Notations<Filter> = {
  RateLimiter: notation(rateLimiterKinds, single('ruleSet'), (args) => {
    const limit = readRateLimiter(args)
    return limit && { kind: 'LIMIT', limit }
  }),
  StripPrefix: notation({ parts: segmentCount }, single('parts'), (args) => {
    const count = args.require('parts')
    return count === undefined ? undefined : { kind: 'PATH', change: stripPrefix(count) }
  }),
  RewritePath: notation(
    { regexp: pathExpression, replacement: pathReplacement },
    pair('regexp', 'replacement'),
    (args) => {
      const regexp = args.require('regexp')
      const replacement = args.require('replacement')
      if (regexp === undefined || replacement === undefined) return undefined
      return { kind: 'PATH', change: rewritePath(regexp, replacement) }
    },
  ),
  AddRequestHeader: headerNotation('REQUEST', 'ADD'),
  SetRequestHeader: headerNotation('REQUEST', 'SET'),
  RemoveRequestHeader: removalNotation('REQUEST'),
  AddResponseHeader: headerNotation('RESPONSE', 'ADD'),
  SetResponseHeader: headerNotation('RESPONSE', 'SET'),
  RemoveResponseHeader: removalNotation('RESPONSE'),
  PreserveHostHeader: notation(
    {},
    () => ({}),
    () => ({ kind: 'PRESERVE_HOST' }),
  ),
}

function headerNotation(kind: 'REQUEST' | 'RESPONSE', change: 'ADD' | 'SET'): Notation<Filter> {
  return notation({ name: changeableHeader, value: headerValue }, pair('name', 'value'), (args) => {
    const name = args.require('name')
    const value = args.require('value')
    return name === undefined || value === undefined ? undefined : { kind, change: { kind: change, name, value } }
  })
}

function removalNotation(kind: 'REQUEST' | 'RESPONSE'): Notation<Filter> {
  return notation({ name: changeableHeader }, single('name'), (args) => {
    const name = args.require('name')
    return name === undefined ? undefined : { kind, change: { kind: 'REMOVE', name } }
  })
}
