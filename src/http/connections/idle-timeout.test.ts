import { once } from 'node:events'
import { createServer, type ServerOptions } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { it, onTestFinished } from 'vitest'
import { closeIdleAfterReading } from './idle-timeout.js'

/** Node keeps connections this much longer than `keepAliveTimeout`; some versions cannot change it. */
const bufferMs = 1_000

/** A connection whose first request was answered. */
async function usedConnection(keepAliveTimeout: number): Promise<Socket> {
  const options = { keepAliveTimeout, keepAliveTimeoutBuffer: bufferMs } as ServerOptions
  const server = createServer(options, (request, response) => response.end(request.url))
  closeIdleAfterReading(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').setEncoding('latin1')
  onTestFinished(() => {
    socket.destroy()
    server.close()
  })
  socket.write(get('/first'))
  await received(socket, '/first')
  return socket
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`

/** Resolves when a response ends with `text`, and rejects if the connection ends before. */
function received(socket: Socket, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let all = ''
    socket.on('data', (piece) => {
      all += piece
      if (all.includes(text)) resolve()
    })
    socket.once('error', reject).once('close', () => reject(new Error(`closed after ${all}`)))
  })
}

/** Blocks this process without using the CPU. */
const block = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

it('answers a request that arrived while the process was blocked for longer than the keep-alive timeout', async () => {
  const socket = await usedConnection(500)
  const second = received(socket, '/second')
  socket.write(get('/second'))
  block(500 + bufferMs + 300)
  await second
})

it('closes connections that stay idle', async () => {
  const socket = await usedConnection(50)
  await once(socket, 'close')
})
