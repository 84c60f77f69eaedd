import { once } from 'node:events'
import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { object } from '../validation/structures.js'
import { ApiServer } from './api-server.js'
import { json, route } from './request/route.js'

const echo = route({
  method: 'POST',
  path: '/echo',
  name: 'echo',
  summary: '',
  group: '',
  access: 'PUBLIC',
  body: object({}, {}, { isOpen: true }),
  responses: {},
  handle: ({ body }) => json(body),
})

describe('a client that does not finish its request', () => {
  it.each([
    ['headers', 'POST /echo HTTP/1.1\r\nHost: localhost\r\nX-'],
    [
      'body',
      'POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"a":',
    ],
  ])('%s: receives 408 and is disconnected', async (_, text) => {
    const server = new ApiServer({ routes: [echo], times: { headersMs: 20, requestMs: 40, everyMs: 10 } })
    onTestFinished(() => server.close(0))
    const { port } = await server.listen({ port: 0 })
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    let received = ''
    socket.on('data', (data) => {
      received += data
    })
    socket.write(text)
    await once(socket, 'close')
    expect(received).toMatch(/^HTTP\/1\.1 408 /)
    expect(received).toContain('"code":"FLUXGATE_REQUEST_TIMEOUT"')
  })
})

describe('a port that is already in use', () => {
  it('rejects listen, and the server can still be closed', async () => {
    const first = new ApiServer({ routes: [] })
    const second = new ApiServer({ routes: [] })
    onTestFinished(() => first.close(0))
    const { port } = await first.listen({ port: 0 })
    await expect(second.listen({ port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
    await second.close(0)
  })
})
