/** Applications test their middleware with fake timers, and with requests that have no socket. */
import { afterEach, expect, it, vi } from 'vitest'

afterEach(() => {
  vi.useRealTimers()
  vi.resetModules()
})

const response = () => ({
  statusCode: 200,
  body: '',
  getHeader: () => undefined,
  setHeader: () => undefined,
  once: () => undefined,
  end(body: string) {
    this.body = body
  },
})

/** Resolves with true if the request is allowed, or with the status of the rejection. */
const send = (limit: (request: never, response: never, next: (error?: unknown) => void) => void, request: object) =>
  new Promise<true | number>((resolve, reject) => {
    const reply = response()
    reply.end = () => resolve(reply.statusCode)
    limit(request as never, reply as never, (error) => (error === undefined ? resolve(true) : reject(error)))
  })

it('limits requests with async hooks while all timers and microtasks are faked, even if it was loaded under them', async () => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'Date', 'performance', 'hrtime'],
  })
  vi.resetModules()
  const { rateLimit } = await import('../../../src/middleware/express.js')
  const limit = rateLimit({ capacity: 2, window: '1h', key: async () => 'ann' })
  const request = { method: 'GET', url: '/', headers: {}, socket: { remoteAddress: '192.0.2.1' } }
  expect([await send(limit, request), await send(limit, request), await send(limit, request)]).toEqual([
    true,
    true,
    429,
  ])
})

it('limits requests without a socket by their ip, or by the key or address that hooks return', async () => {
  const { rateLimit } = await import('../../../src/middleware/express.js')
  const byIp = rateLimit({ capacity: 1, window: '1h' })
  const ann = { method: 'GET', url: '/', headers: {}, ip: '192.0.2.1' }
  const bob = { ...ann, ip: '192.0.2.2' }
  expect([await send(byIp, ann), await send(byIp, ann), await send(byIp, bob)]).toEqual([true, 429, true])

  const clients = ['192.0.2.1', '192.0.2.1', '192.0.2.2']
  const customized = rateLimit({
    capacity: 1,
    window: '1h',
    customize: (context) => ({ ...context, clientIp: clients.shift() }),
  })
  const bare = { method: 'GET', url: '/', headers: {} }
  expect([await send(customized, bare), await send(customized, bare), await send(customized, bare)]).toEqual([
    true,
    429,
    true,
  ])
})
