import type { Fields } from '../../validation/fields.js'
import type { HeaderChange } from './header-change.js'
import { changeableHeader, headerValue, pathExpression, pathText, segmentCount } from './kinds.js'
import { type RouteLimit, rateLimiterFields, readRateLimiter } from './limit.js'
import { oneNamed, type PartForm, type PartForms, pair, single } from './part.js'
import { type PathChange, rewritePath, stripPrefix } from './path-change.js'

/** What one filter does. */
export type Filter =
  | { readonly kind: 'LIMIT'; readonly limit: RouteLimit }
  | { readonly kind: 'PATH'; readonly change: PathChange }
  | { readonly kind: 'REQUEST' | 'RESPONSE'; readonly change: HeaderChange }
  | { readonly kind: 'PRESERVE_HOST' }

/** As the Spring Cloud Gateway spells them. */
export const filterForms: PartForms<Filter> = {
  RateLimiter: {
    args: rateLimiterFields,
    short: single('ruleSet'),
    read(args, mistakes) {
      const limit = readRateLimiter(args, mistakes)
      return limit && { kind: 'LIMIT', limit }
    },
  },
  StripPrefix: {
    args: ['parts'],
    short: single('parts'),
    read(args) {
      const parts = args.require('parts', segmentCount)
      return parts === undefined ? undefined : { kind: 'PATH', change: stripPrefix(parts) }
    },
  },
  RewritePath: {
    args: ['regexp', 'replacement'],
    short: pair('regexp', 'replacement'),
    read(args) {
      const regexp = args.require('regexp', pathExpression)
      const replacement = args.require('replacement', pathText)
      if (regexp === undefined || replacement === undefined) return undefined
      return { kind: 'PATH', change: rewritePath(regexp, replacement) }
    },
  },
  AddRequestHeader: headerForm('REQUEST', 'ADD'),
  SetRequestHeader: headerForm('REQUEST', 'SET'),
  RemoveRequestHeader: removalForm('REQUEST'),
  AddResponseHeader: headerForm('RESPONSE', 'ADD'),
  SetResponseHeader: headerForm('RESPONSE', 'SET'),
  RemoveResponseHeader: removalForm('RESPONSE'),
  PreserveHostHeader: { args: [], short: () => ({}), read: () => ({ kind: 'PRESERVE_HOST' }) },
}

function headerForm(kind: 'REQUEST' | 'RESPONSE', change: 'ADD' | 'SET'): PartForm<Filter> {
  return {
    args: ['name', 'value'],
    short: pair('name', 'value'),
    read(args) {
      const name = nameOf(args)
      const value = headerValue.parse(args.value('value'))
      // Not shown: it may be what the upstream knows the gateway by.
      if (value === undefined) args.wrong('value', `not understood; allowed: ${headerValue.allowed}`)
      return name === undefined || value === undefined ? undefined : { kind, change: { kind: change, name, value } }
    },
  }
}

function removalForm(kind: 'REQUEST' | 'RESPONSE'): PartForm<Filter> {
  return {
    args: ['name'],
    short: single('name'),
    read(args) {
      const name = nameOf(args)
      return name === undefined ? undefined : { kind, change: { kind: 'REMOVE', name } }
    },
  }
}

const nameOf = (args: Fields): string | undefined => oneNamed(args, ['name'], changeableHeader)
