import { type Cidr, parseCidr } from '../../core/keys/ip-address.js'
import { pathPatternIssue } from '../../core/matching/paths/path-pattern.js'
import { headerName } from '../../http/option-kinds.js'
import { durationTicks } from '../../validation/duration.js'
import { type Kind, secret } from '../../validation/kind.js'
import { text, textMatching, wholeNumber } from '../../validation/kinds.js'
import { forbiddenFilterHeaders } from '../headers/hop-by-hop.js'
import { type Origin, parseOrigin } from '../upstream/origin.js'
import { wholeMatch } from './predicates.js'

/** The URI of an upstream. It may contain a password. */
export const originUri: Kind<Origin> = secret({
  allowed: 'http://host:port or https://host:port without a path',
  schema: text.schema,
  parse: (value) => (typeof value === 'string' ? parseOrigin(value) : undefined),
})

export const changeableHeader: Kind<string> = {
  ...headerName,
  allowed: 'a header name, except connection headers such as Connection or Content-Length',
  parse(value) {
    const name = headerName.parse(value)
    return name === undefined || forbiddenFilterHeaders.has(name.toLowerCase()) ? undefined : name
  },
}

/** The value of a header. It may be a credential for the upstream. */
export const headerValue: Kind<string> = secret({
  allowed: 'a string of at most 8192 printable characters',
  schema: { type: ['string', 'number', 'boolean'] },
  parse(value) {
    const text = typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
    return typeof text === 'string' && /^[\t\x20-\x7e\x80-\xff]{0,8192}$/.test(text) ? text : undefined
  },
})

/** A regular expression that must match the whole value. */
export const valuePattern: Kind<RegExp> = {
  allowed: 'a regular expression',
  schema: { type: ['string', 'number'] },
  parse: (value) => {
    const text = typeof value === 'number' ? String(value) : value
    return typeof text === 'string' && text.length <= 1_024 ? wholeMatch(text) : undefined
  },
}

/** A regular expression that may match anywhere in the path. */
export const pathExpression: Kind<RegExp> = {
  allowed: valuePattern.allowed,
  schema: text.schema,
  parse: (value) => (valuePattern.parse(value) && typeof value === 'string' ? new RegExp(value) : undefined),
}

export const pathReplacement = textMatching(
  'a path replacement, with $1 or $\\{name} for the match of a group',
  /^[\x21-\x22\x24-\x3e\x40-\x7e]{0,1024}$/,
)

export const hostPattern: Kind<string> = {
  allowed: 'a host pattern such as **.example.org, where * matches one label and ** any number of labels',
  schema: text.schema,
  parse: (value) =>
    typeof value === 'string' && /^[\w.*?{}-]{1,255}$/.test(value) && pathPatternIssue(`/${value}`) === undefined
      ? value
      : undefined,
}

export const network: Kind<Cidr> = {
  allowed: 'an IP address such as 10.0.0.1, or a CIDR range such as 10.0.0.0/8',
  schema: text.schema,
  parse: (value) => (typeof value === 'string' ? parseCidr(value.trim()) : undefined),
}

const segments = wholeNumber(1, 100)

/** Also accepts digits as a string, because shortcuts contain only text. */
export const segmentCount: Kind<number> = {
  ...segments,
  parse: (value) => segments.parse(typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) : value),
}

const dayMs = 86_400_000

/** Plain numbers are milliseconds, as in the route metadata of Spring Cloud Gateway. */
export const routeTimeout: Kind<number> = {
  allowed: 'an integer number of milliseconds, or a duration such as 500ms, 1.5s, 1m, from 1ms to 1d',
  schema: {
    anyOf: [{ type: 'integer', minimum: 1, maximum: dayMs }, text.schema],
  },
  parse(value) {
    const ticks = typeof value === 'number' ? value * 1_000 : durationTicks(value)
    const isAllowed = ticks !== undefined && ticks >= 1_000 && ticks <= dayMs * 1_000 && Number.isInteger(ticks / 1_000)
    return isAllowed ? ticks / 1_000 : undefined
  },
}
