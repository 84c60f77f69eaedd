import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { serverClient } from './server-client.js'

async function clientOf(answer: RequestListener) {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return serverClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, [])
}

it.each([200, 404])('rejects a response with status %d that is not JSON, and names the URL', async (status) => {
  const client = await clientOf((_, response) => response.writeHead(status).end('<html>'))
  await expect(client.request('GET', '/', { expected: [404] })).rejects.toThrow(
    `${client.url} responded with status ${status}, but not as a FluxGate server. Check the URL.`,
  )
})

it('rejects a response whose connection breaks', async () => {
  const client = await clientOf((_, response) => {
    response.writeHead(200, { 'Content-Length': '100' })
    response.write('{', () => response.destroy())
  })
  await expect(client.request('GET', '/')).rejects.toThrow(/^Cannot reach http:.*Check that the server is running/)
})

it('accepts a response without content', async () => {
  const client = await clientOf((_, response) => response.writeHead(204).end())
  expect(await client.request('DELETE', '/')).toEqual({ status: 204, body: undefined })
})
