import { createServer } from 'node:http'
import { HttpHandler } from 'fluxgate-js/handlers'
import { rateLimit } from 'fluxgate-js/node'

const gate = new HttpHandler({
  url: process.env.FLUXGATE_URL ?? 'http://127.0.0.1:8090',
  timeoutMs: 1_000,
  onError: (error) => console.error(error.message),
})

const limit = rateLimit({ gate })
const server = createServer(
  limit((request, response) => response.end(request.url === '/login' ? 'Welcome.\n' : 'Hello.\n')),
)

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})

process.once('SIGTERM', () => server.close(() => gate.close()))
