import { described } from '../../../validation/kind.js'
import { boundedText, identifier, text } from '../../../validation/kinds.js'
import { object } from '../../../validation/structures.js'
import type { ApiParts } from '../../parts.js'
import { json, type Route, route } from '../../request/route.js'
import { count, epochMs, listOf, openObject, windowMs } from '../../schemas/common-schemas.js'
import { audit } from '../../server-log.js'
import { activeRule } from '../active-rule.js'
import { noContent } from '../edit-request.js'

const group = 'Buckets'
const access = 'ADMIN'
const path = '/api/buckets'
const rule = { ruleSetId: described(identifier, 'Rule set ID.'), ruleId: described(identifier, 'Rule ID.') }
const key = described(boundedText(1, 8_192), 'The key, as in `key` of a decision.')

export function bucketRoutes({ gate, log, showKey }: ApiParts): Route[] {
  return [
    route({
      method: 'GET',
      path,
      name: 'getBucket',
      summary: 'Get the bucket of a key under a rule. An unknown key has a full bucket.',
      group,
      access,
      query: object({ ...rule, key }),
      responses: { 200: { description: 'The bucket, by band.', schema: bucketSchema } },
      async handle({ query: { ruleSetId, ruleId, key } }) {
        activeRule(gate, { id: ruleSetId, ruleId })
        const found = await gate.look({ ruleSetId, ruleId, key })
        const bands = found.map(({ label, limit, remaining, resetAt, windowMs, reserved }) => ({
          label,
          limit,
          remaining,
          resetAt,
          windowMs,
          ...(reserved && { reserved }),
        }))
        return json({ ruleSetId, ruleId, key, bands })
      },
    }),
    route({
      method: 'DELETE',
      path,
      name: 'resetBucket',
      summary: 'Reset the bucket of a key under a rule. Without `key`, reset all buckets of the rule.',
      group,
      access,
      query: object(rule, { key }),
      responses: { 204: { description: 'The bucket was reset.' } },
      async handle(call) {
        const { ruleSetId, ruleId, key } = call.query
        activeRule(gate, { id: ruleSetId, ruleId })
        await gate.reset({ ruleSetId, ruleId, ...(key !== undefined && { key }) })
        audit(log, call, 'RESET', { ruleSetId, ruleId, ...(key !== undefined && { key: showKey(key) }) })
        return noContent
      },
    }),
  ]
}

const reservedPermits = openObject('ReservedPermits', {
  reservations: count('Reservations that are neither settled, canceled nor expired.'),
  permits: count('The permits that they have taken.'),
})

const bucketBand = openObject(
  'BucketBand',
  {
    label: text,
    limit: count(),
    remaining: count(),
    resetAt: epochMs('The time at which the bucket is full or its window ends.'),
    windowMs,
  },
  { reserved: described(reservedPermits, 'Open reservations, unless the bucket has none.') },
)

const bucketSchema = openObject('Bucket', { ruleSetId: text, ruleId: text, key: text, bands: listOf(bucketBand) })
