import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { unmeteredDecision } from '../core/decision/unmetered-decision.js'
import { type EventStreamOptions, EventStreams } from './event-streams.js'
import type { ServedGate } from './served-gate.js'

type Listener = (event: object) => void

/** Streams over real connections, of a gate that tells what the test says. */
async function streamsWith(options: Partial<EventStreamOptions> = {}) {
  const listeners = new Map<string, Listener>()
  const on = (name: string, listener: Listener) => {
    listeners.set(name, listener)
    return () => listeners.delete(name)
  }
  const gate = { on, health: async () => ({ status: 'UP' }) } as unknown as ServedGate
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
  return { open, left, tell: (name: string, event: object) => listeners.get(name)?.(event) }
}

/** What arrives, until it holds `enough`. */
async function read(socket: Awaited<ReturnType<typeof connect>>, enough: (text: string) => boolean): Promise<string> {
  let text = ''
  while (!enough(text)) text += String((await once(socket, 'data'))[0])
  return text
}

describe('streams of events', () => {
  it('tell twenty decisions a second, and for how many each stands', async () => {
    let now = 0
    const { open, tell } = await streamsWith({ now: () => now })
    const socket = await open()
    const decided = () =>
      tell('decision', {
        decision: unmeteredDecision(true, 'NO_RULE', 0, { ruleSetId: 'api' }),
        context: { path: '/a' },
      })
    for (let i = 0; i < 50; i++) decided()
    now = 999
    decided()
    now = 1_000
    decided()
    const text = await read(socket, (said) => said.includes('"weight":32'))
    expect(text.match(/^event: decision$/gm)).toHaveLength(21)
    expect(text.match(/"weight":1\b/g)).toHaveLength(20)
  })

  it('are kept alive by a comment', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const { open } = await streamsWith()
    const socket = await open()
    vi.advanceTimersByTime(15_000)
    expect(await read(socket, (said) => said.includes(': still here\n\n'))).not.toContain('event:')
  })

  it('let go of who does not read, and of nobody else', async () => {
    const { open, left, tell } = await streamsWith()
    const reader = await open('/reads')
    let arrived = 0
    reader.on('data', (data) => {
      arrived += data.length
    })
    const sleeper = await open('/sleeps')
    sleeper.pause()
    const error = new Error('x'.repeat(20_000))
    let told = 0
    while (left.length === 0 && told < 5_000) {
      tell('reload', { changed: false, error })
      told += 1
      while (arrived < told * 20_000) await once(reader, 'data')
    }
    expect(left).toEqual(['/sleeps'])
  })
})
