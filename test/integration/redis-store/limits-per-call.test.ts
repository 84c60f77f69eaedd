import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { eventually } from '../../fixtures/eventually.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const { uri } = sharedRedis()

const options = { algorithm: 'FIXED_WINDOW', capacity: 4, window: '1d' } as const

it('charges partially, by force, and with bands of the call, over a URI and over a store', async () => {
  const id = freshPrefix()
  for (const store of [uri, redisStore(uri, { prefix: freshPrefix() })]) {
    const limiter = createLimiter({ ...options, id, store })
    onTestFinished(() => limiter.close())
    expect(await limiter.consume('a', { permits: 3 })).toMatchObject({ allowed: true, remaining: 1, degraded: false })
    expect(await limiter.consume('a', { permits: 3, partial: true })).toMatchObject({ granted: 1, remaining: 0 })
    expect(await limiter.consume('a', { permits: 3, partial: true })).toMatchObject({ allowed: false, granted: 0 })
    expect(await limiter.consume('a', { permits: 2, force: true })).toMatchObject({ allowed: true, remaining: 0 })
    expect(await limiter.consume('a', { bands: [{ capacity: 10 }] })).toMatchObject({ limit: 10, remaining: 3 })
    expect(await limiter.state('a')).toMatchObject({ allowed: true, remaining: 0, limit: 4 })
    expect(await limiter.consume('a', { bands: [{ capacity: 0 }] })).toMatchObject({ reason: 'IMPOSSIBLE' })
    if (typeof store !== 'string') onTestFinished(() => store.close())
  }
})

it('keeps what the rule has counted, although a call with a shorter window has refilled its own bands', async () => {
  const limiter = createLimiter({ capacity: 10, window: '1d', id: freshPrefix(), store: uri })
  onTestFinished(() => limiter.close())
  expect(await limiter.consume('a', 10)).toMatchObject({ allowed: true, remaining: 0 })
  await sleep(5)
  expect(await limiter.consume('a', { bands: [{ capacity: 4, window: '1ms' }] })).toMatchObject({ remaining: 3 })
  await sleep(20)
  expect(await limiter.state('a')).toMatchObject({ remaining: 3, degraded: false })
})

it('reports the time of the decision by the clock of Redis', async () => {
  const clock = manualClock(1_800_000_000_000.5)
  const store = redisStore(uri, { prefix: freshPrefix(), clock })
  const limiter = createLimiter({ capacity: 1, window: '1m', store })
  onTestFinished(async () => {
    await limiter.close()
    await store.close()
  })
  for (const allowed of [true, false]) {
    clock.advance(1_000)
    expect(await limiter.consume('a')).toMatchObject({ allowed, decidedAt: clock.now() })
  }
})

it('applies overrides of a limiter in all processes, over a URI and over a store', async () => {
  const prefix = freshPrefix()
  const id = freshPrefix()
  for (const storeOf of [() => uri, () => redisStore(uri, { prefix })]) {
    const [one, other] = [0, 1].map(() => createLimiter({ ...options, id, overrides: true, store: storeOf() }))
    onTestFinished(async () => void (await Promise.all([one?.close(), other?.close()])))
    expect(await one?.overrides.put({ key: 'a', action: 'LIMIT', bands: [{ capacity: 9, window: '1d' }] })).toEqual({
      created: true,
    })
    expect(await other?.consume('a')).toMatchObject({ limit: 9, remaining: 8, degraded: false })
    expect(await other?.consume('b')).toMatchObject({ limit: 4, remaining: 3 })
    expect((await other?.overrides.list())?.items).toMatchObject([{ key: 'a', action: 'LIMIT' }])
    expect(await one?.overrides.delete('a')).toBe(true)
    expect(await other?.consume('a')).toMatchObject({ limit: 4 })
  }
})

it('resets all keys, also for other processes', async () => {
  const id = freshPrefix()
  const [one, other] = [0, 1].map(() => createLimiter({ ...options, id, store: uri })) as [
    ReturnType<typeof createLimiter>,
    ReturnType<typeof createLimiter>,
  ]
  onTestFinished(async () => void (await Promise.all([one.close(), other.close()])))
  for (const key of ['a', 'b']) expect((await other.consume(key, 4)).allowed).toBe(true)
  await one.resetAll()
  expect(await one.consume('a', 4)).toMatchObject({ allowed: true, degraded: false })
  await eventually('the reset in the other process', async () => (await other.state('b')).remaining === 4)
  expect(await other.state('a')).toMatchObject({ remaining: 0 })
  // A process that starts later uses the same buckets.
  const late = createLimiter({ ...options, id, store: uri })
  onTestFinished(() => late.close())
  expect(await late.state('a')).toMatchObject({ remaining: 0, degraded: false })
})
