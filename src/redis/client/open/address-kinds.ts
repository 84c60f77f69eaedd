import type { Kind } from '../../../validation/kind.js'
import { splitList, textListSchema } from '../../../validation/structures.js'
import { nodeForms, parseNode, parseRedisUri, type RedisNode, uriForms } from './address.js'

export const redisUri: Kind<string> = {
  allowed: uriForms,
  parse: (value) => (parseRedisUri(value) === undefined ? undefined : (value as string)),
  schema: { type: 'string', pattern: '^rediss?://' },
}

export const nodes = (defaultPort: number): Kind<readonly RedisNode[]> => ({
  allowed: `a list of ${nodeForms}, or a comma-separated string`,
  parse(value) {
    const items = splitList(value)
    const parsed = Array.isArray(items) ? items.map((item) => parseNode(item, defaultPort)) : []
    return parsed.length > 0 && !parsed.includes(undefined) ? (parsed as RedisNode[]) : undefined
  },
  schema: textListSchema({
    anyOf: [
      { type: 'string' },
      {
        type: 'object',
        properties: { host: { type: 'string' }, port: { type: ['integer', 'string'] } },
        required: ['host'],
        additionalProperties: false,
      },
    ],
  }),
})
