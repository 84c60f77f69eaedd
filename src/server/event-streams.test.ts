import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { unmeteredDecision } from '../core/decision/unmetered-decision.js'
import type { DecisionSample } from '../telemetry/statistics/statistics.js'
import { type EventStreamOptions, EventStreams } from './event-streams.js'
import type { ServerGate } from './server-gate.js'

type Listener = (event: object) => void

/** Streams over real connections. The test emits the events of the gate with `emit`. */
async function streamsWith(options: Partial<EventStreamOptions> = {}) {
  const listeners = new Map<string, Listener>()
  const on = (name: string, listener: Listener) => {
    listeners.set(name, listener)
    return () => listeners.delete(name)
  }
  const gate = { on, health: async () => ({ status: 'UP' }) } as unknown as ServerGate
  const streams = new EventStreams({ gate, showKey: (key) => key, ...options })
  const left: string[] = []
  const server = createServer(async (request, response) => {
    const take = await streams.open()
    response.once('close', () => left.push(request.url ?? ''))
    take(response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const open = async (path = '/') => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    await once(socket, 'data')
    return socket
  }
  return { open, left, emit: (name: string, event: object) => listeners.get(name)?.(event) }
}

/** Reads until `enough` is true for the text received so far. */
async function read(socket: Awaited<ReturnType<typeof connect>>, enough: (text: string) => boolean): Promise<string> {
  let text = ''
  while (!enough(text)) text += String((await once(socket, 'data'))[0])
  return text
}

describe('event streams', () => {
  it('send twenty sampled decisions per second with their weights', async () => {
    let now = 0
    const { open, emit } = await streamsWith({ now: () => now })
    const socket = await open()
    const decided = () =>
      emit('decision', {
        decision: unmeteredDecision(true, 'NO_RULE', 0, { ruleSetId: 'api' }),
        context: { path: '/a' },
      })
    for (let i = 0; i < 50; i++) decided()
    now = 999
    decided()
    now = 1_000
    decided()
    const text = await read(socket, (received) => received.includes('"weight":32'))
    expect(text.match(/^event: decision$/gm)).toHaveLength(21)
    expect(text.match(/"weight":1\b/g)).toHaveLength(20)
  })

  it('listen to samples only while a stream is open, and add up their weights', async () => {
    let listener: ((sample: DecisionSample) => void) | undefined
    const onSample = (added: typeof listener) => {
      listener = added
      return () => {
        listener = undefined
      }
    }
    const { open, emit } = await streamsWith({ onSample, now: () => 0 })
    expect(listener).toBeUndefined()
    const socket = await open()
    const decision = unmeteredDecision(true, 'NO_RULE', 0, { ruleSetId: 'api' })
    listener?.({ decision, context: { path: '/a' }, at: 7, weight: 30 })
    emit('decision', { decision, context: {} })
    listener?.({ decision, context: { path: '/b' }, at: 8, weight: 12 })
    const text = await read(socket, (received) => received.includes('"/b"'))
    expect(text.match(/"weight":\d+/g)).toEqual(['"weight":30', '"weight":12'])
    socket.destroy()
    await expect.poll(() => listener).toBeUndefined()
  })

  it('send a heartbeat comment every 15 seconds', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const { open } = await streamsWith()
    const socket = await open()
    vi.advanceTimersByTime(15_000)
    expect(await read(socket, (received) => received.includes(': heartbeat\n\n'))).not.toContain('event:')
  })

  it('disconnect a client that does not read, and no other', async () => {
    const { open, left, emit } = await streamsWith()
    const reader = await open('/reads')
    let arrived = 0
    reader.on('data', (data) => {
      arrived += data.length
    })
    const sleeper = await open('/sleeps')
    sleeper.pause()
    const error = new Error('x'.repeat(20_000))
    let sent = 0
    while (left.length === 0 && sent < 5_000) {
      emit('reload', { changed: false, error })
      sent += 1
      while (arrived < sent * 20_000) await once(reader, 'data')
    }
    expect(left).toEqual(['/sleeps'])
  })
})
