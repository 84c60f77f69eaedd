import { pathPattern } from '../rules/schema/fields/request-kinds.js'
import type { Kind } from '../validation/kind.js'
import { text, textMatching, wholeNumber } from '../validation/kinds.js'
import { splitList, textList, textListSchema } from '../validation/structures.js'
import { parseTrustedProxies, trustedProxyForms } from './client-ip/trusted-proxies.js'
import { type HeaderChoice, headerChoices, headerDialects, parseHeaderChoice } from './header-dialects.js'

export const patternList = textList('path patterns such as /api/**', pathPattern)

export const trustedProxies: Kind<number | readonly string[]> = {
  allowed: `${trustedProxyForms}, as a list or a comma-separated string`,
  schema: { anyOf: [wholeNumber(0, 100).schema, textListSchema(text.schema)] },
  parse: parseTrustedProxies,
}

/** Environment variables separate the names of a list by commas. */
export const headerChoice: Kind<HeaderChoice> = {
  allowed: `one of ${headerChoices.join(', ')}, or a list such as draft-7, legacy`,
  schema: { anyOf: [{ enum: headerChoices }, { type: 'array', items: { enum: headerDialects }, maxItems: 2 }] },
  parse: (value) => parseHeaderChoice(typeof value === 'string' && value.includes(',') ? splitList(value) : value),
}

const workers = wholeNumber(1, 256)

export const workerCount: Kind<number | 'auto'> = {
  allowed: `${workers.allowed}, or auto (one per core)`,
  schema: { anyOf: [workers.schema, { const: 'auto' }] },
  parse: (value) => (value === 'auto' ? value : workers.parse(value)),
}

export const headerName = textMatching('a header name', /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/)
