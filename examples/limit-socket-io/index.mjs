import { createServer } from 'node:http'
import { createFluxGate } from 'fluxgate-js'
import { Server } from 'socket.io'

// By address, because a client that reconnects has a new `socket.id`. Clients that keep sending over the limit are banned.
const ban = { after: 5, within: '1m', for: '5m' }
const gate = await createFluxGate({
  rules: {
    id: 'chat',
    rules: [
      { id: 'connections', path: '/connections', bands: [{ label: 'minute', capacity: 10, window: '1m' }] },
      { id: 'messages', path: '/messages', bands: [{ label: 'minute', capacity: 30, window: '1m' }], ban },
    ],
  },
})

const server = createServer()
const io = new Server(server)

io.use(async (socket, next) => {
  const clientIp = socket.handshake.address
  const connection = await gate.check({ clientIp, path: '/connections' })
  const message = await gate.check({ clientIp, path: '/messages' }, { peek: true })
  if (!connection.allowed) next(rejection(connection))
  else next(message.reason === 'BANNED' ? rejection(message) : undefined)
})

const rejection = ({ reason, retryAfterMs }) => Object.assign(new Error(reason), { data: { retryAfterMs } })

io.on('connection', (socket) => {
  socket.use(async ([, ...args], next) => {
    const clientIp = socket.handshake.address
    const { allowed, reason, retryAfterMs } = await gate.check({ clientIp, path: '/messages' })
    if (allowed) {
      next()
      return
    }
    const acknowledge = args.at(-1)
    if (typeof acknowledge === 'function') acknowledge({ error: 'too many messages', retryAfterMs })
    else socket.emit('rejected', { retryAfterMs })
    if (reason === 'BANNED') socket.disconnect(true)
  })

  socket.on('chat', (text, acknowledge) => {
    socket.broadcast.emit('chat', text)
    if (typeof acknowledge === 'function') acknowledge({ ok: true })
  })
})

server.listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}`)
})

process.once('SIGTERM', () => io.close(() => gate.close()))
