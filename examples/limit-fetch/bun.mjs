import { rateLimit } from 'fluxgate-js/fetch'

const limit = rateLimit({
  id: 'login',
  capacity: 3,
  window: '1m',
  remoteAddress: (request, server) => server.requestIP(request)?.address,
})

const server = Bun.serve({
  port: Number(process.env.PORT ?? 3000),
  hostname: '127.0.0.1',
  fetch: limit.wrap(() => new Response('Welcome.\n')),
})
console.log(`http://127.0.0.1:${server.port}`)
