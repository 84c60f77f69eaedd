import { serve } from '@hono/node-server'
import { rateLimit } from 'fluxgate-js/fetch'

const perAddress = rateLimit({ id: 'per-address', capacity: 60, window: '1m' })
const logins = rateLimit({ id: 'login', path: '/login', method: 'POST', capacity: 3, window: '1m' })

// wrap() takes any function from Request to Response and passes further arguments on to it.
const handler = perAddress.wrap(
  logins.wrap((request) => new Response(request.url.endsWith('/login') ? 'Welcome.\n' : 'Hello.\n')),
)

const fetch = (request, { incoming }) => handler(request, { remoteAddress: incoming.socket.remoteAddress })
const port = Number(process.env.PORT ?? 3000)
const server = serve({ fetch, port, hostname: '127.0.0.1' }, (address) => {
  console.log(`http://127.0.0.1:${address.port}`)
})

process.once('SIGTERM', () => server.close())
