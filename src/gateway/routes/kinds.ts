import { type Cidr, parseCidr } from '../../core/keys/ip-address.js'
import { pathPatternMistake } from '../../core/matching/paths/path-pattern.js'
import { headerName } from '../../http/option-kinds.js'
import { durationTicks } from '../../validation/duration.js'
import type { Kind } from '../../validation/fields.js'
import { notForFilters } from '../headers/hop-by-hop.js'
import { wholeMatch } from './predicates.js'

export const changeableHeader: Kind<string> = {
  allowed: 'the name of a header, other than those that are about a connection, such as Connection or Content-Length',
  parse(value) {
    const name = headerName.parse(value)
    return name === undefined || notForFilters.has(name.toLowerCase()) ? undefined : name
  },
}

export const headerValue: Kind<string> = {
  allowed: 'text of printable characters, at most 8192',
  parse(value) {
    const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
    return typeof text === 'string' && /^[\t\x20-\x7e\x80-\xff]{0,8192}$/.test(text) ? text : undefined
  },
}

/** Has to match a value as a whole. */
export const valuePattern: Kind<RegExp> = {
  allowed: 'a regular expression',
  parse: (value) => {
    const text = typeof value === 'number' ? String(value) : value
    return typeof text === 'string' && text.length <= 1_024 ? wholeMatch(text) : undefined
  },
}

/** Matches anywhere. */
export const pathExpression: Kind<RegExp> = {
  allowed: valuePattern.allowed,
  parse: (value) => (valuePattern.parse(value) && typeof value === 'string' ? new RegExp(value) : undefined),
}

export const pathText: Kind<string> = {
  allowed: 'the characters of a path, with $1 or $\\{name} for what a group matched',
  parse: (value) =>
    typeof value === 'string' && /^[\x21-\x22\x24-\x3e\x40-\x7e]{0,1024}$/.test(value) ? value : undefined,
}

export const hostPattern: Kind<string> = {
  allowed: 'a host, in which * stands for one label and ** for any number: **.example.org',
  parse: (value) =>
    typeof value === 'string' && /^[\w.*?{}-]{1,255}$/.test(value) && pathPatternMistake(`/${value}`) === undefined
      ? value
      : undefined,
}

export const network: Kind<Cidr> = {
  allowed: 'an address such as 10.0.0.1, or a network such as 10.0.0.0/8',
  parse: (value) => (typeof value === 'string' ? parseCidr(value.trim()) : undefined),
}

/** Also as text, which is all that a short form has. */
export const segmentCount: Kind<number> = {
  allowed: 'a whole number from 1 to 100',
  parse(value) {
    const number = typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) : value
    return Number.isInteger(number) && (number as number) >= 1 && (number as number) <= 100
      ? (number as number)
      : undefined
  },
}

const dayMs = 86_400_000

/** In milliseconds, as the Spring Cloud Gateway counts them where a route has its own. */
export const routeTimeout: Kind<number> = {
  allowed: 'a whole number of milliseconds, or text such as 500ms, 1.5s, 1m, from 1 ms to 1 d',
  parse(value) {
    const ticks = typeof value === 'number' ? value * 1_000 : durationTicks(value)
    const isAllowed = ticks !== undefined && ticks >= 1_000 && ticks <= dayMs * 1_000 && Number.isInteger(ticks / 1_000)
    return isAllowed ? ticks / 1_000 : undefined
  },
}
