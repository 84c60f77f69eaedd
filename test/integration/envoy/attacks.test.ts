import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { expect, it, onTestFinished } from 'vitest'
import { seededRandom } from '../../../src/core/seeded-random.js'
import type { GrpcLimits } from '../../../src/envoy/grpc/grpc-server.js'
import { randomSeed } from '../../fixtures/random-seed.js'
import {
  callHeaders,
  encodeHeaders,
  flags,
  frame,
  framed,
  frameTypes,
  onFrames,
  preface,
  socketOf,
} from './http2-frames.js'
import { descriptor, methodOf } from './rate-limit-client.js'
import { rateLimitServer } from './test-rate-limit-server.js'

const rules = { id: 'edge', rules: [{ id: 'all', bands: [{ capacity: 1_000_000, window: '1h' }] }] }
const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const request = methodOf(path).requestSerialize({ domain: 'edge', descriptors: [descriptor('a', 'b')] })
const headers = callHeaders(path)
const headerBlock = encodeHeaders(path)
const refusedStream = 7

async function attacked(limits: Partial<GrpcLimits> = {}) {
  const { port, ask } = await rateLimitServer(rules, { limits })
  const isAlive = async () => expect(await ask('edge', [descriptor('a', 'b')])).toMatchObject({ overall_code: 'OK' })
  return { port, isAlive, session: () => sessionOf(port), socket: () => socketOf(port) }
}

function sessionOf(port: number): ClientHttp2Session {
  const session = connect(`http://127.0.0.1:${port}`)
  session.on('error', () => {})
  onTestFinished(() => session.destroy())
  return session
}

/** Sends the bytes as the body of a call. Resolves with its gRPC status; `closed` if the stream ends without one. */
function send(
  session: ClientHttp2Session,
  body: Buffer | undefined,
  options: { isOpen?: boolean } = {},
): Promise<string> {
  const stream = session.request(headers)
  return new Promise((resolve) => {
    let status = 'closed'
    stream.on('error', () => {}).resume()
    for (const event of ['response', 'trailers'] as const)
      stream.on(event, (seen) => {
        if (seen['grpc-status'] !== undefined) status = String(seen['grpc-status'])
      })
    stream.on('close', () => resolve(status))
    if (body !== undefined) stream.write(body)
    if (!options.isOpen) stream.end()
  })
}

it('answers malformed messages with a status, and stays available', async () => {
  const { session, isAlive } = await attacked()
  const client = session()
  const bodies: [string, Buffer][] = [
    ['INTERNAL', framed(Buffer.from([0x0a]))],
    ['INTERNAL', framed(Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]))],
    ['INTERNAL', framed(Buffer.alloc(64, 0xff))],
    ['INTERNAL', framed(Buffer.from([0x12, 0x02, 0x1a, 0x05]))],
    ['INTERNAL', framed(Buffer.from([0x00, 0x01]))],
    ['INTERNAL', framed(Buffer.concat(new Array(100).fill(Buffer.from([0x4b]))))],
    ['INTERNAL', framed(request).subarray(0, 9)],
    ['RESOURCE_EXHAUSTED', framed(Buffer.alloc(16), 0xffff_ffff)],
    ['RESOURCE_EXHAUSTED', framed(Buffer.alloc(16), 65_537)],
    ['UNIMPLEMENTED', framed(request, undefined, 1)],
    ['UNIMPLEMENTED', Buffer.concat([framed(request), framed(request)])],
    ['UNIMPLEMENTED', Buffer.alloc(0)],
    ['OK', framed(Buffer.concat([request, Buffer.from([0x4b, 0x08, 0x01, 0x4c, 0x7d, 1, 2, 3, 4])]))],
  ]
  const codes = { OK: '0', INTERNAL: '13', RESOURCE_EXHAUSTED: '8', UNIMPLEMENTED: '12' }
  for (const [i, [code, body]] of bodies.entries())
    expect(await send(client, body), `body ${i}`).toBe(codes[code as keyof typeof codes])
  await isAlive()
})

it('answers random bytes with a status', async () => {
  const seed = randomSeed()
  const random = seededRandom(seed)
  const { session, isAlive } = await attacked()
  const client = session()
  const statuses = await Promise.all(
    Array.from({ length: 300 }, () => {
      const body = random() < 0.5 ? Buffer.from(request) : Buffer.alloc(Math.floor(random() * 80))
      for (let i = 0; i < body.length; i++) if (random() < 0.3) body[i] = Math.floor(random() * 256)
      return send(client, framed(body))
    }),
  )
  expect(new Set(statuses), `seed ${seed}`).not.toContain('closed')
  expect(new Set(statuses), `seed ${seed}`).not.toContain('2')
  await isAlive()
})

it('reads a message in pieces of one byte', async () => {
  const { session } = await attacked()
  const client = session()
  const stream = client.request(headers)
  for (const byte of framed(request)) {
    stream.write(Buffer.from([byte]))
    await new Promise((resolve) => setImmediate(resolve))
  }
  stream.end()
  const [trailers] = await once(stream.resume(), 'trailers')
  expect(trailers['grpc-status']).toBe('0')
})

it('answers 10,000 calls that a client opens at once', async () => {
  const { session, isAlive } = await attacked()
  const client = session()
  const statuses = await Promise.all(Array.from({ length: 10_000 }, () => send(client, framed(request))))
  expect(statuses.filter((status) => status !== '0')).toEqual([])
  await isAlive()
})

it('refuses streams beyond the limit, and disconnects a client that keeps opening them', async () => {
  const { socket, isAlive } = await attacked({ maxStreams: 100 })
  const client = await socket()
  const refused: number[] = []
  onFrames(client, ({ type, stream, payload }) => {
    if (type === frameTypes.rstStream && payload.readUInt32BE(0) === refusedStream) refused.push(stream)
  })
  const closed = once(client, 'close')
  client.write(Buffer.concat([preface, frame(frameTypes.settings, 0, 0, Buffer.alloc(0))]))
  for (let i = 0; i < 10_000; i++) client.write(frame(frameTypes.headers, flags.endHeaders, 2 * i + 1, headerBlock))
  await closed
  expect(refused.length).toBeGreaterThan(0)
  expect(Math.min(...refused)).toBe(201)
  await isAlive()
})

it('ends calls of clients that stop sending', async () => {
  const { session, isAlive } = await attacked({ callMs: 30, checkMs: 5 })
  expect(await send(session(), framed(request).subarray(0, 12), { isOpen: true })).toBe('4')
  expect(await send(session(), undefined, { isOpen: true })).toBe('4')
  await isAlive()
})

it('resets streams of clients that do not read the response', async () => {
  const { port, isAlive } = await attacked({ callMs: 30, checkMs: 5 })
  const client = connect(`http://127.0.0.1:${port}`, { settings: { initialWindowSize: 0 } })
  onTestFinished(() => client.destroy())
  expect(await send(client, framed(request))).toBe('closed')
  await isAlive()
})

it('bounds the bytes of incomplete messages over all calls', async () => {
  const { session, isAlive } = await attacked({ maxIncompleteBytes: 100_000 })
  const client = session()
  const large = framed(Buffer.alloc(30_000), 60_000)
  const open = Array.from({ length: 8 }, () => send(client, large, { isOpen: true }))
  expect(await Promise.race(open)).toBe('8')
  client.destroy()
  await Promise.all(open)
  expect(await send(session(), framed(Buffer.alloc(60_000)))).toBe('13')
  await isAlive()
})

it('closes connections that do not use HTTP/2', async () => {
  const { socket, isAlive } = await attacked({ handshakeMs: 30, checkMs: 5 })
  const silent = await socket()
  await once(silent, 'close')
  const http1 = await socket()
  http1.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await once(http1, 'close')
  await isAlive()
})

it('closes connections that do not answer a ping', async () => {
  const { socket, isAlive } = await attacked({ keepAliveMs: 30, checkMs: 5 })
  const client = await socket()
  client.write(Buffer.concat([preface, frame(frameTypes.settings, 0, 0, Buffer.alloc(0))]))
  await once(client, 'close')
  await isAlive()
})

it('survives large headers, floods of resets and random frames', async () => {
  const seed = randomSeed()
  const random = seededRandom(seed)
  const { socket, session, isAlive } = await attacked()
  const large = session().request({ ...headers, 'x-large': 'x'.repeat(100_000) })
  large.on('error', () => {}).resume()
  await new Promise<void>((resolve) => large.once('close', resolve))
  const flood = await socket()
  flood.write(Buffer.concat([preface, frame(frameTypes.settings, 0, 0, Buffer.alloc(0))]))
  for (let i = 0; i < 5_000; i++) {
    flood.write(frame(frameTypes.headers, flags.endHeaders, 2 * i + 1, headerBlock))
    flood.write(frame(frameTypes.rstStream, 0, 2 * i + 1, Buffer.from([0, 0, 0, 8])))
  }
  const noisy = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const client = await socket()
      client.write(preface)
      for (let i = 0; i < 50; i++) {
        const payload = Buffer.from(Array.from({ length: Math.floor(random() * 40) }, () => Math.floor(random() * 256)))
        client.write(frame(Math.floor(random() * 11), Math.floor(random() * 256), Math.floor(random() * 8), payload))
      }
      return client
    }),
  )
  await isAlive()
  for (const client of noisy) client.destroy()
  flood.destroy()
  await isAlive()
})
