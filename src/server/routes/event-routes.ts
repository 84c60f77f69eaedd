import type { EventStreams } from '../event-streams.js'
import { type Route, route } from '../request/route.js'

export function eventRoutes(events: EventStreams): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/events',
      name: 'events',
      summary: 'Stream sampled decisions, reloads and health changes as server-sent events.',
      group: 'Statistics',
      access: 'ADMIN',
      responses: {
        200: {
          description: 'Events named `decision`, `reload` and `health`, with JSON data.',
          type: 'text/event-stream',
        },
        503: { description: 'Too many open streams, or the server is stopping.' },
      },
      handle: async () => ({ status: 200, stream: await events.open() }),
    }),
  ]
}
