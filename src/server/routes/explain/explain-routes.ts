import type { ExplainedRule, Explanation } from '../../../core/explain/explanation.js'
import type { ShowKey } from '../../../telemetry/key-digest.js'
import type { ApiParts } from '../../parts.js'
import { json, type Route, route } from '../../request/route.js'
import { explainSchema, explanationSchema } from '../../schemas/explain-schema.js'
import { rejectionQuerySchema, rejectionsSchema } from '../../schemas/rejection-schema.js'
import { chargeOf, contextOf } from '../check-routes.js'
import { pastRejections } from './past-rejections.js'

export function explainRoutes(parts: ApiParts): Route[] {
  const { gate, showKey } = parts
  return [
    route({
      method: 'POST',
      path: '/api/ratelimit/explain',
      name: 'explain',
      summary: 'Explain the decision about a request: every rule, its condition that failed or its buckets.',
      description: 'Charges nothing. Requires the admin token, because it shows rules and buckets.',
      group: 'Decisions',
      access: 'ADMIN',
      body: explainSchema,
      responses: { 200: { description: 'The rules and the decision.', schema: explanationSchema } },
      async handle({ body }) {
        const options = { ...chargeOf(body), limit: body.limit ?? undefined }
        return json(shown(await gate.explain(contextOf(body), options), showKey))
      },
    }),
    route({
      method: 'POST',
      path: '/api/ratelimit/explain/rejection',
      name: 'explainRejection',
      summary: 'Find past rejections by the RateLimit header of the response, the trace ID, or both.',
      group: 'Decisions',
      access: 'ADMIN',
      body: rejectionQuerySchema,
      responses: { 200: { description: 'The limits of that name, and the rejections.', schema: rejectionsSchema } },
      handle: async ({ body }) => json(await pastRejections(parts, body)),
    }),
  ]
}

/** Shows keys and API keys as digests, unless the server reveals keys. */
function shown({ decision, rules, ...rest }: Explanation, showKey: ShowKey): Explanation {
  const { key, bands } = decision
  return {
    ...rest,
    rules: rules.map((rule) => shownRule(rule, showKey)),
    decision: {
      ...decision,
      key: key === null ? null : showKey(key),
      bands: bands.map((band) => ({ ...band, key: showKey(band.key) })),
    },
  }
}

function shownRule({ failed, buckets, ...rest }: ExplainedRule, showKey: ShowKey): ExplainedRule {
  const isSecret = failed?.field === 'apiKey' && typeof failed.received === 'string'
  return {
    ...rest,
    failed: isSecret ? { ...failed, received: showKey(failed.received as string) } : failed,
    buckets: buckets.map((bucket) => ({ ...bucket, key: showKey(bucket.key) })),
  }
}
