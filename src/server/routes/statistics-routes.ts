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

/** What has happened lately, for the console and for people. */
export function statisticsRoutes(parts: ApiParts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/stats',
      name: 'statistics',
      summary: 'How many decisions were made, by rule and by second.',
      group,
      access,
      responses: { 200: { description: 'The counts.', schema: summarySchema } },
      handle: async () => json(await statisticsOf(parts).summary()),
    }),
    route({
      method: 'GET',
      path: '/api/stats/top',
      name: 'topKeys',
      summary: 'Who was refused most, or who asked most.',
      group,
      access,
      query: Type.Object({ by: Type.Optional(oneOf(['denied', 'requests'], 'Default: denied.')), limit }),
      responses: { 200: { description: 'The identities, most first.', schema: keysSchema } },
      handle: async ({ query: { by = 'denied', limit = defaultLimit } }) =>
        json({ keys: await statisticsOf(parts).top({ by, limit }) }),
    }),
    route({
      method: 'GET',
      path: '/api/keys',
      name: 'findKeys',
      summary: 'Identities that were seen lately, by the beginning of their key, or any that chance picks.',
      group,
      access,
      query: Type.Object({
        prefix: Type.Optional(Type.String({ maxLength: 1_024 })),
        sample: Type.Optional(Type.Boolean({ description: 'Pick at random; a prefix is then of no account.' })),
        limit,
      }),
      responses: { 200: { description: 'The identities, the most frequent first.', schema: keysSchema } },
      handle: async ({ query: { prefix = '', sample = false, limit = defaultLimit } }) => {
        const statistics = statisticsOf(parts)
        return json({ keys: await (sample ? statistics.sample({ limit }) : statistics.keys({ prefix, limit })) })
      },
    }),
    route({
      method: 'GET',
      path: '/api/decisions/recent',
      name: 'recentDecisions',
      summary: 'The latest decisions; of very many, a sample.',
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
  throw new ApiProblem('FLUXGATE_NOT_SUPPORTED', 'This server keeps no statistics.')
}
