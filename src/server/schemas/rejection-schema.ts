import { described, type ValueOf } from '../../validation/kind.js'
import { boundedText, text, wholeNumber } from '../../validation/kinds.js'
import { nullable } from '../../validation/structures.js'
import { count, listOf, openObject, windowMs } from './common-schemas.js'
import { recentDecisionSchema } from './statistics-schemas.js'

export const rejectionQuerySchema = openObject(
  'RejectionQuery',
  {},
  {
    ratelimit: described(nullable(boundedText(1, 1_024)), 'Value of the `RateLimit` header of the response.'),
    traceId: described(nullable(boundedText(1, 128)), 'Trace ID of the request, from `traceparent` or `X-Trace-Id`.'),
    ruleSetId: described(nullable(boundedText(1, 128)), 'Only this rule set.'),
    limit: described(nullable(wholeNumber(1, 100)), 'Maximum number of rejections. Default: 10.'),
  },
  '`ratelimit` or `traceId` is required.',
)

export type RejectionQuery = ValueOf<typeof rejectionQuerySchema>

const policySchema = openObject('RateLimitPolicy', {
  ruleSetId: text,
  ruleId: text,
  band: text,
  limit: count(),
  windowMs,
})

export const rejectionsSchema = openObject('Rejections', {
  policies: listOf(policySchema, 'The current bands that the `RateLimit` header names. Empty without `ratelimit`.'),
  remaining: described(nullable(wholeNumber(0)), '`r` of the `RateLimit` header.'),
  resetSeconds: described(nullable(wholeNumber(0)), '`t` of the `RateLimit` header.'),
  rejections: listOf(recentDecisionSchema, 'Matching rejections among the latest ones, newest first.'),
})
