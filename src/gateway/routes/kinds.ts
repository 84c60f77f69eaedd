import { type Cidr, parseCidr } from '../../core/keys/ip-address.js'
import { pathPatternIssue } from '../../core/matching/paths/path-pattern.js'
import { headerName } from '../../http/option-kinds.js'
import { durationTicks } from '../../validation/duration.js'
import type { Kind } from '../../validation/fields.js'
import { notForFilters } from '../headers/hop-by-hop.js'
import { wholeMatch } from './predicates.js'

export const changeableHeader: Kind<string> = {
  allowed: 'a header name, except connection headers such as Connection or Content-Length',
  parse(value) {
    const name = headerName.parse(value)
    return name === undefined || notForFilters.has(name.toLowerCase()) ? undefined : name
  },
}

export const headerValue: Kind<string> = {
  allowed: 'a string of at most 8192 printable characters',
  parse(value) {
    const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
    return typeof text === 'string' && /^[\t\x20-\x7e\x80-\xff]{0,8192}$/.test(text) ? text : undefined
  },
}

/** A regular expression that must match the whole value. */
export const valuePattern: Kind<RegExp> = {
  allowed: 'a regular expression',
  parse: (value) => {
    const text = typeof value === 'number' ? String(value) : value
    return typeof text === 'string' && text.length <= 1_024 ? wholeMatch(text) : undefined
  },
}

/** A regular expression that may match anywhere in the path. */
export const pathExpression: Kind<RegExp> = {
  allowed: valuePattern.allowed,
  parse: (value) => (valuePattern.parse(value) && typeof value === 'string' ? new RegExp(value) : undefined),
}

export const pathText: Kind<string> = {
  allowed: 'a path replacement, with $1 or $\\{name} for the match of a group',
  parse: (value) =>
    typeof value === 'string' && /^[\x21-\x22\x24-\x3e\x40-\x7e]{0,1024}$/.test(value) ? value : undefined,
}

export const hostPattern: Kind<string> = {
  allowed: 'a host pattern such as **.example.org, where * matches one label and ** any number of labels',
  parse: (value) =>
    typeof value === 'string' && /^[\w.*?{}-]{1,255}$/.test(value) && pathPatternIssue(`/${value}`) === undefined
      ? value
      : undefined,
}

export const network: Kind<Cidr> = {
  allowed: 'an IP address such as 10.0.0.1, or a CIDR range such as 10.0.0.0/8',
  parse: (value) => (typeof value === 'string' ? parseCidr(value.trim()) : undefined),
}

/** Also accepts digits as a string, because shortcut filters contain only text. */
export const segmentCount: Kind<number> = {
  allowed: 'an integer from 1 to 100',
  parse(value) {
    const number = typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) : value
    return Number.isInteger(number) && (number as number) >= 1 && (number as number) <= 100
      ? (number as number)
      : undefined
  },
}

const dayMs = 86_400_000

/** Plain numbers are milliseconds, as in the route metadata of Spring Cloud Gateway. */
export const routeTimeout: Kind<number> = {
  allowed: 'an integer number of milliseconds, or a duration such as 500ms, 1.5s, 1m, from 1ms to 1d',
  parse(value) {
    const ticks = typeof value === 'number' ? value * 1_000 : durationTicks(value)
    const isAllowed = ticks !== undefined && ticks >= 1_000 && ticks <= dayMs * 1_000 && Number.isInteger(ticks / 1_000)
    return isAllowed ? ticks / 1_000 : undefined
  },
}
