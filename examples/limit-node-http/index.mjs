import { createServer } from 'node:http'
import { createFluxGate } from 'fluxgate-js'
import { rateLimit } from 'fluxgate-js/node'

const gate = await createFluxGate({
  rules: {
    id: 'api',
    rules: [
      { id: 'per-address', path: '/**', bands: [{ label: 'minute', capacity: 60, window: '1m' }] },
      { id: 'login', path: '/login', method: 'POST', bands: [{ label: 'tries', capacity: 3, window: '1m' }] },
    ],
  },
})

const limit = rateLimit({ gate })
const server = createServer(
  limit((request, response) => response.end(request.url === '/login' ? 'Welcome.\n' : 'Hello.\n')),
)

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})

process.once('SIGTERM', () => server.close(() => gate.close()))
