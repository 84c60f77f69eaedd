import Type from 'typebox'
import type { Statistics } from '../../telemetry/statistics/statistics.js'
import type { ApiParts } from '../api-parts.js'
import { ApiProblem } from '../request/api-problem.js'
import { json, type Route, route } from '../request/route.js'
import { defaultLimit, oneOf, pageParameters } from '../schemas/common-schemas.js'
import { keysSchema, recentSchema, summarySchema } from '../schemas/statistics-schemas.js'

const group = 'Statistics'
const access = 'ADMIN'
const { limit } = pageParameters

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
      path: '/api/stats/top',
      name: 'topKeys',
      summary: 'List the keys with the most rejections or the most requests.',
      group,
      access,
      query: Type.Object({ by: Type.Optional(oneOf(['denied', 'requests'], 'Sort order. Default: denied.')), limit }),
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
      query: Type.Object({
        prefix: Type.Optional(Type.String({ maxLength: 1_024, description: 'List only keys with this prefix.' })),
        sample: Type.Optional(Type.Boolean({ description: 'Return a random sample and ignore `prefix`.' })),
        limit,
      }),
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
      query: Type.Object({ limit }),
      responses: { 200: { description: 'The decisions.', schema: recentSchema } },
      handle: async ({ query: { limit = defaultLimit } }) =>
        json({ decisions: await statisticsOf(parts).recent({ limit }) }),
    }),
  ]
}

function statisticsOf({ statistics }: ApiParts): Statistics {
  if (statistics !== undefined) return statistics
  throw new ApiProblem('FLUXGATE_NOT_SUPPORTED', 'This server is not configured to collect statistics.')
}
