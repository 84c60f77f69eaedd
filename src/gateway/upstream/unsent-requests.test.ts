/** Requests whose idle connection is closed or reset at the moment of their use. */
import { once } from 'node:events'
import { readFile } from 'node:fs'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import type { Exchange } from './exchange.js'
import { type PoolLimits, UpstreamPool } from './pool.js'

const limits: PoolLimits = {
  connectTimeoutMs: 60_000,
  responseTimeoutMs: 60_000,
  idleTimeoutMs: 0,
  keepAliveMs: 60_000,
  minUploadRate: 0,
  uploadGraceMs: 60_000,
  maxConnections: 1,
  clientShare: 1,
}

/** An upstream that answers every request, and a pool with one connection to it. */
async function start() {
  const sockets: Socket[] = []
  const received: string[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket
      .on('error', () => {})
      .on('data', (data) => {
        received.push(String(data).split(' HTTP')[0] as string)
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
      })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const pool = new UpstreamPool(
    { isSecure: false, hostname: '127.0.0.1', port, authority: `127.0.0.1:${port}` },
    limits,
  )
  onTestFinished(() => {
    pool.retire()
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { pool, sockets, received }
}

/** Resolves with the status of the response, or the kind of the failure. */
const send = (pool: UpstreamPool, method: string, path: string): Promise<number | string> =>
  new Promise((resolve) => {
    let status = 0
    const exchange: Exchange = {
      method,
      path,
      trace: undefined,
      headers: ['Host', 'a'],
      body: undefined,
      isUpgrade: false,
      isRetryable: method === 'GET',
      needsNodeTransport: false,
      timeouts: undefined,
      clientAddress: () => '127.0.0.1',
      onInformation: () => {},
      onHead: (head) => {
        status = head.status
      },
      onData: () => true,
      onEnd: () => resolve(status),
      onFailure: ({ kind }) => resolve(kind),
      onUpgrade: () => {},
    }
    pool.request(exchange)
  })

/** undici writes to an idle connection in the check phase of the event loop. Called in that phase, it reads before it writes. */
const beforeReading = (run: () => void): unknown => setImmediate(run)
/** Called in the poll phase, it writes before it reads. */
const beforeWriting = (run: () => void): unknown => readFile(import.meta.filename, run)

it.each([
  ['closed, and undici reads that first', 'destroy', beforeReading],
  ['reset, and undici reads that first', 'resetAndDestroy', beforeReading],
  ['reset, and the write fails', 'resetAndDestroy', beforeWriting],
] as const)('an idempotent request uses a new connection if the idle one is %s', async (_, end, schedule) => {
  const { pool, sockets, received } = await start()
  expect(await send(pool, 'GET', '/1')).toBe(200)
  const second = new Promise<number | string>((resolve) =>
    schedule(() => {
      sockets[0]?.[end]()
      resolve(send(pool, 'GET', '/2'))
    }),
  )
  expect(await second).toBe(200)
  expect(received).toEqual(['GET /1', 'GET /2'])
  expect(sockets).toHaveLength(2)
})

it('a request that is not idempotent fails if its idle connection is reset', async () => {
  const { pool, sockets, received } = await start()
  expect(await send(pool, 'POST', '/1')).toBe(200)
  const second = new Promise<number | string>((resolve) =>
    beforeWriting(() => {
      sockets[0]?.resetAndDestroy()
      resolve(send(pool, 'POST', '/2'))
    }),
  )
  expect(await second).toBe('BROKEN')
  expect(received).toEqual(['POST /1'])
})
