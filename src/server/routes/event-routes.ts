import type { EventStreams } from '../event-streams.js'
import { type Route, route } from '../request/route.js'

export function eventRoutes(events: EventStreams): Route[] {
  return [
    route({
      method: 'GET',
      path: '/api/events',
      name: 'events',
      summary: 'What happens, as it happens: decisions (a sample), reloads, health. Server-sent events.',
      group: 'Statistics',
      access: 'ADMIN',
      responses: {
        200: {
          description: 'Events called `decision`, `reload` and `health`, with JSON as their data.',
          type: 'text/event-stream',
        },
        503: { description: 'Too many are listening, or the server is stopping.' },
      },
      handle: async () => ({ status: 200, stream: await events.open() }),
    }),
  ]
}
