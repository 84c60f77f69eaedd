import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, it, onTestFinished } from 'vitest'
import { ClientConnections } from './client-connections.js'

/** Sends the packets one after another, each after the server has read the one before, and returns all responses. */
async function exchange(packets: readonly string[]): Promise<string> {
  let accepted: Socket | undefined
  const server = createServer({ keepAliveTimeout: 0 })
  const connections = new ClientConnections(server, false)
  server.on('clientError', (error, socket) =>
    connections.answerParseError(error, socket, () => ({ status: 400, headers: {}, body: 'malformed' })),
  )
  server.on('request', (_, response) => {
    connections.begin(response)
    response.end()
  })
  server.on('connection', (socket) => {
    accepted = socket
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const responses = text(client)
  let sent = 0
  for (const packet of packets) {
    await expect.poll(() => accepted?.bytesRead ?? 0, { interval: 2 }).toBe(sent)
    client.write(packet)
    sent += packet.length
  }
  return responses
}

it.each([
  ['its request line', ['HEA', 'D ./x HTTP/1.1\r\nHost: a\r\n\r\n']],
  ['its target', ['HEAD ', './x HTTP/1.1\r\nHost: a\r\n\r\n']],
  ['an earlier request', ['GET / HTTP/1.1\r\nHost: a\r\n\r\nHE', 'AD ./x HTTP/1.1\r\nHost: a\r\n\r\n']],
])('sends no body to a malformed HEAD request whose packet begins within %s', async (_, packets) => {
  expect(await exchange(packets)).toMatch(/HTTP\/1\.1 400 .*\r\n\r\n$/s)
})

it.each([
  ['the first packet of the connection', ['\x16\x03\x01']],
  ['a later packet with the whole request line', ['GET / HTTP/1.1\r\nHost: a\r\n\r\n', 'GET ./x HTTP/1.1\r\n\r\n']],
  ['a later packet with another method', ['GET / HTTP/1.1\r\nHost: a\r\n\r\n', 'PROPFIND ./x HTTP/1.1\r\n\r\n']],
])('describes a malformed request in %s', async (_, packets) => {
  expect(await exchange(packets)).toMatch(/HTTP\/1\.1 400 .*\r\n\r\nmalformed$/s)
})
