/** Every middleware, with a decision that completes after the response was sent or the client disconnected. */
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { Guard } from '../../../src/http/guard.js'
import type { Handler } from '../../../src/index.js'
import { eventually } from '../../fixtures/eventually.js'
import { adapters } from './adapters.js'
import { gateOf, startBed } from './test-app.js'

/** A gate that decides when the test calls `decide`. Counts decisions and refunds. */
async function slowHandler() {
  const gate = await gateOf({ bands: [{ capacity: 5, window: '1h' }] })
  let decide = (): void => {}
  const mayDecide = new Promise<void>((resolve) => {
    decide = resolve
  })
  const counts = { asked: 0, refunds: 0 }
  const handler: Handler = {
    async check(context, options) {
      counts.asked += 1
      await mayDecide
      return gate.check(context, options)
    },
    async refund(context, options) {
      await gate.refund(context, options)
      counts.refunds += 1
    },
  }
  const left = async () => (await gate.look({ ruleSetId: 'api', ruleId: 'rule', key: '127.0.0.1' }))[0]?.remaining
  return { handler, counts, decide: () => decide(), left }
}

const ways: readonly [string, (response: ServerResponse) => void][] = [
  ['ended', (response) => void response.end('early')],
  ['begun', (response) => void response.writeHead(503, { 'Content-Length': 5 }).write('ear')],
  ['destroyed', (response) => void response.destroy()],
]

describe.each(adapters)('$name', (adapter) => {
  it.each(
    // A `fetch` request has no response that an application could start.
    ways.filter(([way]) => adapter.name !== 'fetch' || way !== 'begun'),
  )('refunds a request whose response was %s during the decision', async (_, send) => {
    const { handler, counts, decide, left } = await slowHandler()
    const responses: ServerResponse[] = []
    const bed = await startBed(adapter, [{ handler }])
    bed.application.onResponse = (response) => responses.push(response)
    bed.begin()
    await eventually('asked', () => counts.asked === 1)
    const [response] = responses as [ServerResponse]
    const closed = new Promise((resolve) => response.once('close', resolve))
    send(response)
    if (!response.headersSent || response.writableEnded) await closed
    decide()
    await eventually('refunded', () => counts.refunds === 1)
    expect(await left()).toBe(5)
    expect((await bed.ask()).text).toBe('hello')
    expect(bed.application).toMatchObject({ calls: 1, errors: [] })
    expect([await left(), counts]).toEqual([4, { asked: 2, refunds: 1 }])
  })

  it('refunds a pipelined request whose response ended during the decision', async () => {
    const { handler, counts, decide, left } = await slowHandler()
    const responses: ServerResponse[] = []
    const bed = await startBed(adapter, [{ handler }])
    bed.application.onResponse = (response) => responses.push(response)
    const socket = connect(bed.port, '127.0.0.1')
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    socket.write('GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n')
    await eventually('both asked', () => counts.asked === 2)
    for (const [index, response] of responses.entries()) response.end(`early ${index}`)
    await eventually('both answered', () => received.endsWith('early 1'))
    decide()
    await eventually('both refunded', () => counts.refunds === 2)
    expect(await left()).toBe(5)
    socket.write('GET /3 HTTP/1.1\r\nHost: a\r\n\r\n')
    await eventually('the connection is in use', () => received.includes('hello'))
    expect(bed.application).toMatchObject({ calls: 1, errors: [] })
    socket.destroy()
  })

  it('charges nothing if the client disconnects before a hook has completed', async () => {
    const { handler, counts, decide, left } = await slowHandler()
    const responses: ServerResponse[] = []
    let skipping = 0
    let answered = (): void => {}
    const answer = new Promise<boolean>((resolve) => {
      answered = () => resolve(false)
    })
    const skip = (): Promise<boolean> => {
      skipping += 1
      return answer
    }
    const bed = await startBed(adapter, [{ handler, skip }])
    bed.application.onResponse = (response) => responses.push(response)
    decide()
    const { request } = bed.begin()
    await eventually('the hook was called', () => skipping === 1)
    const [response] = responses as [ServerResponse]
    request.destroy()
    await eventually('the server has noticed the disconnect', () => response.destroyed)
    answered()
    expect((await bed.ask()).text).toBe('hello')
    expect([await left(), counts]).toEqual([4, { asked: 1, refunds: 0 }])
    expect(bed.application).toMatchObject({ calls: 1, errors: [] })
  })

  it('survives its own error after the response was sent', async () => {
    const error = new RangeError('customize failed')
    let customizing = 0
    let fail = (): void => {}
    const failure = new Promise<never>((_, reject) => {
      fail = () => reject(error)
    })
    failure.catch(() => {})
    const customize = () => (customizing++ === 0 ? failure : undefined)
    const responses: ServerResponse[] = []
    const bed = await startBed(adapter, [{ capacity: 5, window: '1m', customize }])
    bed.application.onResponse = (response) => responses.push(response)
    const { answer } = bed.begin()
    await eventually('the hook was called', () => customizing === 1)
    responses[0]?.end('early')
    expect((await answer).text).toBe('early')
    fail()
    expect((await bed.ask()).text).toBe('hello')
    expect(bed.application.calls).toBe(1)
  })
})

it('does not refund a degraded decision, which was not charged to the store', async () => {
  const refunds: unknown[] = []
  const gate = await gateOf({ bands: [{ capacity: 5, window: '1h' }] })
  const handler: Handler = {
    check: async (context) => ({ ...(await gate.check(context)), degraded: true }),
    refund: async (context) => void refunds.push(context),
  }
  const outcome = await new Guard(handler).admit(
    { method: 'GET', url: '/', headers: {}, remoteAddress: '192.0.2.1', signal: () => new AbortController().signal },
    undefined,
  )
  if (outcome.kind === 'ALLOWED') outcome.refund?.()
  expect([outcome.kind, refunds]).toEqual(['ALLOWED', []])
})
