import { createServer } from 'node:http'
import { createFluxGate } from 'fluxgate-js'
import { WebSocketServer } from 'ws'

// The slot of an open connection is renewed until it is released.
const open = { label: 'open', algorithm: 'CONCURRENCY', capacity: 2, maxHold: '1m' }
const gate = await createFluxGate({
  rules: {
    id: 'websockets',
    rules: [
      { id: 'connections', path: '/connections', bands: [open] },
      { id: 'messages', path: '/messages', bands: [{ label: 'minute', capacity: 30, window: '1m' }] },
    ],
  },
})

const server = createServer()
const sockets = new WebSocketServer({ noServer: true, maxPayload: 65_536 })

server.on('upgrade', async (request, socket, head) => {
  // A connection that fails before `ws` takes over must not end the process.
  socket.on('error', () => socket.destroy())
  const clientIp = socket.remoteAddress
  const { decision, release } = await gate.acquire({ clientIp, path: '/connections' })
  // A slot that could not be released expires.
  const end = () => release().catch(() => {})
  socket.once('close', end)
  if (socket.destroyed) end()
  else if (decision.allowed)
    sockets.handleUpgrade(request, socket, head, (client) => sockets.emit('connection', client, clientIp))
  else socket.end('HTTP/1.1 429 Too Many Requests\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
})

sockets.on('connection', (client, clientIp) => {
  client.on('error', () => client.terminate())
  client.on('message', async (data) => {
    const { allowed, retryAfterMs } = await gate.check({ clientIp, path: '/messages' })
    client.send(allowed ? `echo: ${data}` : JSON.stringify({ error: 'too many messages', retryAfterMs }))
  })
})

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})

process.once('SIGTERM', () => {
  for (const client of sockets.clients) client.terminate()
  server.close(() => gate.close())
})
