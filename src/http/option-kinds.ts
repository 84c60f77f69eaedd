import { pathPattern } from '../rules/schema/fields/request-kinds.js'
import type { Kind } from '../validation/kind.js'
import { text, textMatching, wholeNumber } from '../validation/kinds.js'
import { textList, textListSchema } from '../validation/structures.js'
import { parseTrustedProxies, trustedProxyForms } from './client-ip/trusted-proxies.js'
import type { HeaderChoice } from './rate-limit-headers.js'

export const patternList = textList('path patterns such as /api/**', pathPattern)

export const trustedProxies: Kind<number | readonly string[]> = {
  allowed: `${trustedProxyForms}, as a list or a comma-separated string`,
  schema: { anyOf: [wholeNumber(0, 100).schema, textListSchema(text.schema)] },
  parse: parseTrustedProxies,
}

export const headerChoice: Kind<HeaderChoice> = {
  allowed: 'one of both, standard, legacy, false',
  schema: { enum: ['both', 'standard', 'legacy', false] },
  parse: (value) =>
    value === false || value === 'both' || value === 'standard' || value === 'legacy' ? value : undefined,
}

const workers = wholeNumber(1, 256)

export const workerCount: Kind<number | 'auto'> = {
  allowed: `${workers.allowed}, or auto (one per core)`,
  schema: { anyOf: [workers.schema, { const: 'auto' }] },
  parse: (value) => (value === 'auto' ? value : workers.parse(value)),
}

export const headerName = textMatching('a header name', /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/)
