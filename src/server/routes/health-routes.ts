import { metricsContentType } from '../../telemetry/metrics.js'
import type { ApiParts } from '../api-parts.js'
import { ApiProblem } from '../api-problem.js'
import { json, type Route, route } from '../route.js'
import { infoSchema, liveSchema, readySchema } from '../schemas/health-schema.js'

const group = 'Operations'

/** For those who run it: probes, Prometheus, and people who want to know what runs. */
export function healthRoutes({ gate, metrics, info, isDraining }: ApiParts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/health/live',
      name: 'live',
      summary: 'Whether this process answers, whatever it depends on.',
      group,
      access: 'PUBLIC',
      responses: { 200: { description: 'It does.', schema: liveSchema } },
      handle: () => json({ status: 'UP' }),
    }),
    route({
      method: 'GET',
      path: '/health/ready',
      name: 'ready',
      summary: 'Whether this process should be asked; if not, what it lacks, and since when.',
      group,
      access: 'PUBLIC',
      responses: {
        200: { description: 'It should.', schema: readySchema },
        503: { description: 'The store is down, or the server is stopping.', schema: readySchema },
      },
      async handle() {
        const { status, store, rules } = await gate.health()
        const state = isDraining() ? 'STOPPING' : store.status === 'DOWN' ? 'DOWN' : status
        return json(
          {
            status: state,
            store: { status: store.status, sinceAt: rounded(store.sinceAt), error: store.error },
            rules: { status: rules.status, sinceAt: rounded(rules.sinceAt), error: rules.error },
          },
          state === 'STOPPING' || state === 'DOWN' ? 503 : 200,
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
