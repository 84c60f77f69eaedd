import Type from 'typebox'
import type { ApiParts } from '../api-parts.js'
import { audit } from '../audit.js'
import { json, type Route, route } from '../request/route.js'
import { bucketSchema } from '../schemas/bucket-schema.js'
import { identifier } from '../schemas/common-schemas.js'
import { noContent } from './rule-editing.js'
import { ruleInForce } from './rule-in-force.js'

const group = 'Buckets'
const access = 'ADMIN'
const path = '/api/buckets'
const rule = { ruleSetId: identifier('The rule set.'), ruleId: identifier('The rule.') }
const key = Type.String({ minLength: 1, maxLength: 8_192, description: 'The identity, as `key` of a decision.' })

export function bucketRoutes({ gate, log, showKey }: ApiParts): Route[] {
  return [
    route({
      method: 'GET',
      path,
      name: 'getBucket',
      summary: 'What one identity has left under a rule; an unknown one has all.',
      group,
      access,
      query: Type.Object({ ...rule, key }),
      responses: { 200: { description: 'The bucket, band by band.', schema: bucketSchema } },
      async handle({ query: { ruleSetId, ruleId, key } }) {
        ruleInForce(gate, { id: ruleSetId, ruleId })
        const found = await gate.look({ ruleSetId, ruleId, key })
        const bands = found.map(({ label, limit, remaining, resetAt, windowMs }) => ({
          label,
          limit,
          remaining,
          resetAt,
          windowMs,
        }))
        return json({ ruleSetId, ruleId, key, bands })
      },
    }),
    route({
      method: 'DELETE',
      path,
      name: 'resetBucket',
      summary: 'Forget what one identity has used under a rule; without a key, what everybody has.',
      group,
      access,
      query: Type.Object({ ...rule, key: Type.Optional(key) }),
      responses: { 204: { description: 'It is full again.' } },
      async handle(call) {
        const { ruleSetId, ruleId, key } = call.query
        ruleInForce(gate, { id: ruleSetId, ruleId })
        await gate.reset({ ruleSetId, ruleId, ...(key !== undefined && { key }) })
        audit(log, call, 'RESET', { ruleSetId, ruleId, ...(key !== undefined && { key: showKey(key) }) })
        return noContent
      },
    }),
  ]
}
