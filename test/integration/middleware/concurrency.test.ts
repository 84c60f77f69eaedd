/** Every middleware under a limit of requests in progress. */
import { describe, expect, it } from 'vitest'
import { eventually } from '../../fixtures/eventually.js'
import { adapters } from './adapters.js'
import { gateOf, startBed } from './test-app.js'

const rule = { bands: [{ algorithm: 'CONCURRENCY', capacity: 2, maxHold: '60s' }] } as const

/** An application whose responses the test completes. */
function pendingAnswers() {
  const pending: ((text: string) => void)[] = []
  const answer = (): Promise<string> => new Promise((resolve) => pending.push(resolve))
  return { pending, answer }
}

describe.each(adapters)('$name', (adapter) => {
  it('allows as many requests at the same time as the capacity, and another one when a response has finished', async () => {
    const gate = await gateOf(rule)
    const { pending, answer } = pendingAnswers()
    const bed = await startBed(adapter, [{ handler: gate }], answer)
    const first = bed.begin()
    const second = bed.begin()
    await eventually('two in progress', () => pending.length === 2)
    const rejected = await bed.ask()
    expect(rejected.status).toBe(429)
    expect(rejected.headers['ratelimit-policy']).toBe('"rule.concurrent";q=2;qu="concurrent-requests"')
    expect(rejected.headers['retry-after']).toBe('60')
    pending[0]?.('one')
    await Promise.race([first.answer, second.answer])
    await eventually('a slot is free', () => gate.heldCount === 1)
    const third = bed.begin()
    await eventually('three were called', () => pending.length === 3)
    for (const end of pending) end('done')
    expect((await third.answer).status).toBe(200)
    await eventually('all slots are free', () => gate.heldCount === 0)
  })

  it('frees the slot of a client that disconnects', async () => {
    const gate = await gateOf(rule)
    const { pending, answer } = pendingAnswers()
    const bed = await startBed(adapter, [{ handler: gate }], answer)
    const { request, answer: lost } = bed.begin()
    lost.catch(() => {})
    await eventually('in progress', () => pending.length === 1)
    expect(gate.heldCount).toBe(1)
    request.destroy()
    // Some frameworks notice the end only with the response.
    pending[0]?.('late')
    await eventually('the slot is free', () => gate.heldCount === 0)
  })

  it('frees the slot if the application fails', async () => {
    const gate = await gateOf(rule)
    const bed = await startBed(adapter, [{ handler: gate }], () => Promise.reject(new Error('failed')))
    await bed.ask().catch(() => {})
    await eventually('the slot is free', () => gate.heldCount === 0)
  })
})
