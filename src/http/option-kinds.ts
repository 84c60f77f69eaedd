import { pathPattern } from '../rules/schema/path-schema.js'
import type { Kind } from '../validation/fields.js'
import { parseTrustedProxies, trustedProxyForms } from './client-ip/trusted-proxies.js'
import type { HeaderChoice } from './headers/rate-limit-headers.js'

/** A list of strings, or a comma-separated string for environment variables. */
function listOf(allowed: string, isAllowed: (item: string) => boolean): Kind<readonly string[]> {
  return {
    allowed: `a list, or text separated by commas, of ${allowed}`,
    parse(value) {
      const items: unknown = typeof value === 'string' ? value.split(',').map((item) => item.trim()) : value
      if (!Array.isArray(items) || items.length > 10_000) return undefined
      return items.every((item) => typeof item === 'string' && isAllowed(item)) ? items : undefined
    },
  }
}

export const patternList = listOf('path patterns such as /api/**', (item) => pathPattern.parse(item) !== undefined)

export const trustedProxies: Kind<number | readonly string[]> = {
  allowed: `${trustedProxyForms}, as a list or a comma-separated string`,
  parse: parseTrustedProxies,
}

export const headerChoice: Kind<HeaderChoice> = {
  allowed: 'one of both, standard, legacy, false',
  parse: (value) =>
    value === false || value === 'both' || value === 'standard' || value === 'legacy' ? value : undefined,
}

export const workerCount: Kind<number | 'auto'> = {
  allowed: 'an integer from 1 to 256, or auto (one per core)',
  parse: (value) => {
    if (value === 'auto') return value
    return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 256 ? (value as number) : undefined
  },
}

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/

export const headerName: Kind<string> = {
  allowed: 'a header name',
  parse: (value) => (typeof value === 'string' && token.test(value) ? value : undefined),
}
