import { expect, it, onTestFinished } from 'vitest'
import { memoryStore } from '../../stores/memory/memory-store.js'
import { createLimiter, type Limiter, type LimiterOptions } from './create-limiter.js'

function openLimiter(options: Partial<LimiterOptions> = {}): Limiter {
  const limiter = createLimiter({ capacity: 100, window: '1h', ...options } as LimiterOptions)
  onTestFinished(() => limiter.close())
  return limiter
}

it('reserves, settles and cancels permits of a key', async () => {
  const limiter = openLimiter({ permits: 2 })
  const { decision, id } = await limiter.reserve('a', { permits: 20, ttlMs: 60_000 })
  expect(decision.remaining).toBe(60)
  expect((await limiter.settle(id, 5)).decision.remaining).toBe(90)
  const second = await limiter.reserve('a', { ttlMs: 60_000, id: 'job' })
  expect(second).toMatchObject({ id: 'job', decision: { remaining: 88 } })
  expect(await limiter.cancel('job')).toMatchObject({ status: 'CANCELED', decision: { remaining: 90 } })
})

it('keeps the ids of limiters with the same store apart', async () => {
  const store = memoryStore()
  const one = openLimiter({ id: 'one', store })
  const other = openLimiter({ id: 'other', store })
  await one.reserve('a', { permits: 10, ttlMs: 60_000, id: 'job' })
  await expect(other.settle('job')).rejects.toMatchObject({ code: 'FLUXGATE_RESERVATION_UNKNOWN' })
  expect((await other.reserve('a', { permits: 30, ttlMs: 60_000, id: 'job' })).decision.remaining).toBe(70)
  expect((await one.settle('job')).decision.remaining).toBe(90)
})

it('rejects invalid options', async () => {
  const limiter = openLimiter()
  const withCosts = { ttlMs: 1, costs: { tokens: 1 } } as never
  await expect(limiter.reserve('a', withCosts)).rejects.toThrow('reserve has no option "costs"')
  await expect(limiter.reserve('', { ttlMs: 1 })).rejects.toThrow('key must be a non-empty string')
})
