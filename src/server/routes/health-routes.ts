import { metricsContentType } from '../../telemetry/metrics.js'
import type { ApiParts } from '../api-parts.js'
import { ApiProblem } from '../request/api-problem.js'
import { json, type Route, route } from '../request/route.js'
import { infoSchema, liveSchema, readyQuerySchema, readySchema } from '../schemas/health-schema.js'

const group = 'Operations'

/** For those who run it: probes, Prometheus, and people who want to know what runs. */
export function healthRoutes({ health, metrics, info, isDraining }: ApiParts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/health/live',
      name: 'live',
      summary: 'Liveness: 200 while the process answers. Does not depend on other systems.',
      group,
      access: 'PUBLIC',
      responses: { 200: { description: 'The process answers.', schema: liveSchema } },
      handle: () => json({ status: 'UP' }),
    }),
    route({
      method: 'GET',
      path: '/health/ready',
      name: 'ready',
      summary: 'Readiness: 200 while checks can be answered, also without the shared store.',
      group,
      access: 'PUBLIC',
      query: readyQuerySchema,
      responses: {
        200: { description: 'Checks are answered. The status may be DEGRADED, unless `strict`.', schema: readySchema },
        503: {
          description: 'The server is stopping or its gate is closed; with `strict`, also DEGRADED.',
          schema: readySchema,
        },
      },
      async handle({ query: { strict = false } }) {
        const { status, store, rules } = await health()
        const state = isDraining() ? 'STOPPING' : status
        const isReady = state === 'UP' || (state === 'DEGRADED' && !strict)
        return json(
          {
            status: state,
            store: { status: store.status, sinceAt: rounded(store.sinceAt), error: store.error },
            rules: { status: rules.status, sinceAt: rounded(rules.sinceAt), error: rules.error },
          },
          isReady ? 200 : 503,
        )
      },
    }),
    route({
      method: 'GET',
      path: '/metrics',
      name: 'metrics',
      summary: 'Counts and durations, for Prometheus.',
      group,
      access: 'ADMIN',
      responses: { 200: { description: 'Prometheus text, version 0.0.4.', type: 'text/plain' } },
      async handle() {
        if (metrics === undefined) throw new ApiProblem('FLUXGATE_NOT_SUPPORTED', 'This server keeps no metrics.')
        const headers = { 'Content-Type': metricsContentType }
        return { status: 200, headers, text: await metrics() }
      },
    }),
    route({
      method: 'GET',
      path: '/info',
      name: 'info',
      summary: 'What runs here.',
      group,
      access: 'ADMIN',
      responses: { 200: { description: 'Version, kinds of stores, and the like.', schema: infoSchema } },
      async handle() {
        return json((await info?.()) ?? { name: 'fluxgate' })
      },
    }),
  ]
}

const rounded = (instant: number | null): number | null => (instant === null ? null : Math.round(instant))
