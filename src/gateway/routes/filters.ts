import type { Fields } from '../../validation/fields.js'
import type { HeaderChange } from './header-change.js'
import { changeableHeader, headerValue, pathExpression, pathText, segmentCount } from './kinds.js'
import { type RouteLimit, rateLimiterFields, readRateLimiter } from './limit.js'
import { oneNamed, type PartForm, type PartForms, pair, single } from './part.js'
import { type PathChange, rewritePath, stripPrefix } from './path-change.js'

/** The effect of a filter. */
export type Filter =
  | { readonly kind: 'LIMIT'; readonly limit: RouteLimit }
  | { readonly kind: 'PATH'; readonly change: PathChange }
  | { readonly kind: 'REQUEST' | 'RESPONSE'; readonly change: HeaderChange }
  | { readonly kind: 'PRESERVE_HOST' }

/** Filters in the notation of Spring Cloud Gateway. */
export const filterForms: PartForms<Filter> = {
  RateLimiter: {
    args: rateLimiterFields,
    short: single('ruleSet'),
    read(args, issues) {
      const limit = readRateLimiter(args, issues)
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
      // The value may be a credential for the upstream, so the message does not show it.
      if (value === undefined) args.wrong('value', `must be ${headerValue.allowed}; the received value is hidden`)
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
