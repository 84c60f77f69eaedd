import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { rateLimit } from '../node.js'
import { closeSignal } from './close-signal.js'

it('adds one listener for many calls, and aborts when the emitter closes', () => {
  const socket = new EventEmitter()
  const signals = Array.from({ length: 100 }, () => closeSignal(socket))
  expect(socket.listenerCount('close')).toBe(1)
  expect(signals.some(({ aborted }) => aborted)).toBe(false)
  socket.emit('close')
  expect(signals.every(({ aborted }) => aborted)).toBe(true)
})

it('keeps no listeners of pipelined requests whose responses have finished', async () => {
  const limit = rateLimit({ algorithm: 'CONCURRENCY', capacity: 1_000 })
  const requests: IncomingMessage[] = []
  const server = createServer(
    limit((request, response) => {
      requests.push(request)
      setImmediate(() => response.end('ok'))
    }),
  )
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  onTestFinished(async () => {
    client.destroy()
    server.close()
    await limit.close()
  })
  let text = ''
  client.on('data', (chunk) => {
    text += chunk
  })
  const listenersAfter = async (count: number): Promise<number> => {
    for (let i = 0; i < 100; i++) client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
    while (text.split('HTTP/1.1 200').length <= count) await once(client, 'data')
    return requests[0]?.socket.listenerCount('close') ?? 0
  }
  const before = await listenersAfter(100)
  expect(await listenersAfter(200)).toBe(before)
  expect(before).toBeLessThan(10)
})
