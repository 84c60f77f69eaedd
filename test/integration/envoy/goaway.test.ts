import { once } from 'node:events'
import { expect, it } from 'vitest'
import { encodeHeaders, flags, frame, framed, frameTypes, onFrames, preface, socketOf } from './http2-frames.js'
import { descriptor, methodOf } from './rate-limit-client.js'
import { rateLimitServer } from './test-rate-limit-server.js'

const rules = { id: 'edge', rules: [{ id: 'all', bands: [{ capacity: 1_000_000, window: '1h' }] }] }
const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const message = framed(methodOf(path).requestSerialize({ domain: 'edge', descriptors: [descriptor('a', 'b')] }))
const headers = (stream: number) => frame(frameTypes.headers, flags.endHeaders, stream, encodeHeaders(path))
const body = (stream: number) => frame(frameTypes.data, flags.endStream, stream, message)

/** A client that records which calls are answered, and the last call that each GOAWAY accepts. */
async function recordingClient(port: number) {
  const client = await socketOf(port)
  const answered = new Set<number>()
  const goaways = new Set<number>()
  let acknowledged = 0
  onFrames(client, (received) => {
    const { type, stream, payload } = received
    if (type === frameTypes.data) answered.add(stream)
    else if (type === frameTypes.goaway) goaways.add(payload.readUInt32BE(0))
    else if (type === frameTypes.ping && received.flags === flags.ack) acknowledged += 1
  })
  client.write(Buffer.concat([preface, frame(frameTypes.settings, 0, 0, Buffer.alloc(0))]))
  return {
    answered,
    goaways,
    closed: once(client, 'close'),
    write: (...frames: readonly Buffer[]) => client.write(Buffer.concat(frames)),
    /** Sends frames, and resolves when the server has read them. */
    async send(...frames: readonly Buffer[]) {
      const before = acknowledged
      client.write(Buffer.concat([...frames, frame(frameTypes.ping, 0, 0, Buffer.alloc(8))]))
      await expect.poll(() => acknowledged).toBe(before + 1)
    },
  }
}

it('answers calls of a draining connection until it is quiet', async () => {
  const { port, server } = await rateLimitServer(rules, { limits: { quietMs: 60_000, maxQuietWaitMs: 60_000 } })
  const { answered, goaways, send } = await recordingClient(port)
  await send(headers(1), body(1))
  server.drain()
  await send(headers(3), body(3))
  expect([...answered]).toEqual([1, 3])
  expect([...goaways]).toEqual([])
})

it.each([
  ['has been quiet', { quietMs: 20, maxQuietWaitMs: 60_000 }],
  ['has waited long enough for that', { quietMs: 60_000, maxQuietWaitMs: 20 }],
])('closes a draining connection that %s, and answers its open calls', async (_, limits) => {
  const { port, server } = await rateLimitServer(rules, { limits })
  const { answered, goaways, send, write, closed } = await recordingClient(port)
  await send(headers(1))
  server.drain()
  await expect.poll(() => [...goaways]).toEqual([1])
  write(headers(3), body(3), body(1))
  await closed
  expect([...answered]).toEqual([1])
})

it('closes connections without calls when it drains', async () => {
  const { port, server } = await rateLimitServer(rules, { limits: { quietMs: 20 } })
  const { closed } = await recordingClient(port)
  server.drain()
  await closed
})

it('answers calls that have arrived at a draining connection but are not read yet', async () => {
  const { port, server } = await rateLimitServer(rules, { limits: { quietMs: 20 } })
  const { answered, goaways, send, write, closed } = await recordingClient(port)
  await send(headers(1), body(1))
  server.drain()
  write(headers(3), body(3))
  // The timer of the server expires before it reads the call.
  const blockedUntil = performance.now() + 60
  while (performance.now() < blockedUntil);
  await closed
  expect([...answered]).toEqual([1, 3])
  expect([...goaways]).toEqual([3])
})
