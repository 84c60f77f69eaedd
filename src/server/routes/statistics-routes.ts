import type { Statistics } from '../../telemetry/statistics/statistics.js'
import { described } from '../../validation/kind.js'
import { boolean, boundedText, oneOf } from '../../validation/kinds.js'
import { object } from '../../validation/structures.js'
import type { ApiParts } from '../parts.js'
import { ApiProblem, invalidRequest } from '../request/api-problem.js'
import { json, type Route, route } from '../request/route.js'
import { defaultLimit, keyParameters } from '../schemas/common-schemas.js'
import { seriesQuerySchema, seriesSchema } from '../schemas/series-schema.js'
import { keysSchema, recentSchema, summarySchema } from '../schemas/statistics-schemas.js'

const group = 'Statistics'
const access = 'ADMIN'
const { limit } = keyParameters

/** Recent statistics, for the console. */
export function statisticsRoutes(parts: ApiParts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/stats',
      name: 'statistics',
      summary: 'Get decision counts, by rule and by second.',
      group,
      access,
      responses: { 200: { description: 'The counts.', schema: summarySchema } },
      handle: async () => json(await statisticsOf(parts).summary()),
    }),
    route({
      method: 'GET',
      path: '/api/stats/series',
      name: 'series',
      summary: 'Get decisions and latency over time: in total, of a rule set or of a rule.',
      description:
        'Covers 15 minutes by second or 24 hours by minute, of all workers of this server. Only completed intervals are returned.',
      group,
      access,
      query: seriesQuerySchema,
      responses: { 200: { description: 'The series.', schema: seriesSchema } },
      async handle({ query: { resolution = '1s', ruleSetId, ruleId, since } }) {
        if (ruleId !== undefined && ruleSetId === undefined) throw invalidRequest('ruleId', 'requires `ruleSetId`')
        if (parts.series === undefined) throw notCollected()
        return json(await parts.series({ resolution, ruleSetId, ruleId, since }))
      },
    }),
    route({
      method: 'GET',
      path: '/api/stats/top',
      name: 'topKeys',
      summary: 'List the keys with the most rejections or the most requests.',
      group,
      access,
      query: object(
        {},
        { by: described(oneOf(['denied', 'requests'] as const), 'Sort order. Default: denied.'), limit },
      ),
      responses: { 200: { description: 'The keys, highest count first.', schema: keysSchema } },
      handle: async ({ query: { by = 'denied', limit = defaultLimit } }) =>
        json({ keys: await statisticsOf(parts).top({ by, limit }) }),
    }),
    route({
      method: 'GET',
      path: '/api/keys',
      name: 'findKeys',
      summary: 'List recently seen keys by prefix, or a random sample of them.',
      group,
      access,
      query: object(
        {},
        {
          prefix: keyParameters.prefix,
          sample: described(boolean, 'Return a random sample and ignore `prefix`.'),
          limit,
        },
      ),
      responses: { 200: { description: 'The keys, most frequent first.', schema: keysSchema } },
      handle: async ({ query: { prefix = '', sample = false, limit = defaultLimit } }) => {
        const statistics = statisticsOf(parts)
        return json({ keys: await (sample ? statistics.sample({ limit }) : statistics.keys({ prefix, limit })) })
      },
    }),
    route({
      method: 'GET',
      path: '/api/decisions/recent',
      name: 'recentDecisions',
      summary: 'List the latest decisions. Sampled under high load.',
      group,
      access,
      query: object(
        {},
        {
          limit,
          allowed: described(boolean, 'Only allowed or only rejected decisions. Rejections are kept longer.'),
          traceId: described(boundedText(1, 128), 'Only decisions of requests with this trace ID.'),
        },
      ),
      responses: { 200: { description: 'The decisions.', schema: recentSchema } },
      handle: async ({ query: { limit = defaultLimit, allowed, traceId } }) =>
        json({ decisions: await statisticsOf(parts).recent({ limit, allowed, traceId }) }),
    }),
  ]
}

function statisticsOf({ statistics }: ApiParts): Statistics {
  if (statistics !== undefined) return statistics
  throw notCollected()
}

const notCollected = (): ApiProblem =>
  new ApiProblem('FLUXGATE_NOT_SUPPORTED', 'This server is not configured to collect statistics.')
