import { createServer } from 'node:http'
import { createFluxGate } from 'fluxgate'

const gate = await createFluxGate({
  rules: {
    id: 'api',
    rules: [
      { id: 'per-address', path: '/**', bands: [{ label: 'minute', capacity: 60, window: '1m' }] },
      { id: 'login', path: '/login', method: 'POST', bands: [{ label: 'tries', capacity: 3, window: '1m' }] },
    ],
  },
})

const server = createServer(async (request, response) => {
  const { allowed, remaining, retryAfterMs } = await gate.check({
    clientIp: request.socket.remoteAddress,
    method: request.method,
    path: request.url,
    headers: request.headers,
  })
  if (!allowed) {
    // null means that this request can never be allowed, so there is no time to come back at.
    const headers = retryAfterMs === null ? {} : { 'Retry-After': Math.max(1, Math.ceil(retryAfterMs / 1000)) }
    response.writeHead(429, headers).end('Too many requests\n')
    return
  }
  response.end(`Hello. ${remaining} left.\n`)
})

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})

process.once('SIGTERM', () => server.close(() => gate.close()))
