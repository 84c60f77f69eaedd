import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { EventStreams } from './event-streams.js'
import type { ServedGate } from './served-gate.js'

type Listener = (event: { changed: boolean; error: Error }) => void

it('lets go of who does not read, and of nobody else', async () => {
  const listeners = new Map<string, Listener>()
  const on = (name: string, listener: Listener) => {
    listeners.set(name, listener)
    return () => listeners.delete(name)
  }
  const gate = { on, health: async () => ({ status: 'UP' }) } as unknown as ServedGate
  const streams = new EventStreams({ gate, showKey: (key) => key })
  const closed: string[] = []
  const server = createServer(async (request, response) => {
    const take = await streams.open()
    response.once('close', () => closed.push(request.url ?? ''))
    take(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const open = async (path: string) => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    await once(socket, 'data')
    return socket
  }
  const reader = await open('/reads')
  let read = 0
  reader.on('data', (data) => {
    read += data.length
  })
  const sleeper = await open('/sleeps')
  sleeper.pause()
  const error = new Error('x'.repeat(20_000))
  let told = 0
  while (closed.length === 0 && told < 5_000) {
    listeners.get('reload')?.({ changed: false, error })
    told += 1
    while (read < told * 20_000) await once(reader, 'data')
  }
  expect(closed).toEqual(['/sleeps'])
})
