/** Answers that come after their deadline: nobody is admitted by them, and what they took is given back. */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createLimiter, type LimiterOptions } from '../../../src/gate/limiter/create-limiter.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { eventually } from '../../fixtures/eventually.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'
import { freshPrefix } from '../../servers/shared-redis.js'

const timeoutMs = 200
/** So long that nothing comes back by itself while a test runs. */
const window = '30d'

const kinds: readonly (readonly [name: string, rule: LimiterOptions])[] = [
  ['TOKEN_BUCKET', { algorithm: 'TOKEN_BUCKET', capacity: 10, window }],
  ['TOKEN_BUCKET by intervals', { bands: [{ capacity: 10, window, refill: 'INTERVAL' }] }],
  ['LEAKY_BUCKET', { algorithm: 'LEAKY_BUCKET', capacity: 10, window }],
  ['FIXED_WINDOW', { algorithm: 'FIXED_WINDOW', capacity: 10, window }],
  ['SLIDING_WINDOW_LOG', { algorithm: 'SLIDING_WINDOW_LOG', capacity: 10, window }],
  ['SLIDING_WINDOW_COUNTER', { algorithm: 'SLIDING_WINDOW_COUNTER', capacity: 10, window }],
  [
    'two bands',
    {
      bands: [
        { capacity: 10, window },
        { capacity: 100, window, algorithm: 'FIXED_WINDOW' },
      ],
    },
  ],
]

describe('a server that hangs and goes on', () => {
  let server: RedisServer
  let client: Redis
  beforeAll(async () => {
    server = await startRedis()
    client = new Redis(server.uri)
  })
  afterAll(async () => {
    client.disconnect()
    await server.stop()
  })

  /** Two on the same buckets: one that soon goes on without an answer, and one that waits for it. */
  const open = (rule: LimiterOptions) => {
    const prefix = freshPrefix()
    const hasty = createLimiter({ ...rule, store: redisStore(client, { prefix, timeoutMs, openMs: 50 }) })
    const patient = createLimiter({ ...rule, store: redisStore(client, { prefix, timeoutMs: 20_000 }) })
    onTestFinished(() => Promise.all([hasty.close(), patient.close()]).then(() => {}))
    return { hasty, patient }
  }

  it.each(kinds)('%s: gets back what it gave to callers that were gone', async (_, rule) => {
    const { hasty, patient } = open(rule)
    expect(await patient.consume('a', 3)).toMatchObject({ allowed: true, degraded: false, remaining: 7 })
    server.pause()
    const decisions = await Promise.all(Array.from({ length: 5 }, () => hasty.consume('a')))
    expect(decisions.map(({ allowed, degraded }) => [allowed, degraded])).toEqual(Array(5).fill([true, true]))
    server.resume()
    // As it was before, but for the one that is looked for.
    await eventually('nothing is lost', async () => (await patient.peek('a')).remaining === 6)
    const rest = await Promise.all(Array.from({ length: 9 }, () => patient.consume('a')))
    expect(rest.filter(({ allowed }) => allowed)).toHaveLength(7)
    expect(rest.filter(({ degraded }) => degraded)).toEqual([])
  })

  it('keeps nobody waiting who resets a rule meanwhile', async () => {
    const rules = { id: 'api', rules: [{ id: 'rule', bands: [{ capacity: 10, window }] }] }
    const gate = await createFluxGate({ rules, store: redisStore(client, { prefix: freshPrefix(), timeoutMs }) })
    onTestFinished(() => gate.close())
    server.pause()
    onTestFinished(() => server.resume())
    const late = { code: 'FLUXGATE_STORE_TIMEOUT' }
    await expect(gate.reset({ ruleSetId: 'api', ruleId: 'rule' })).rejects.toMatchObject(late)
    await expect(gate.reset({ ruleSetId: 'api', ruleId: 'rule', key: 'ada' })).rejects.toMatchObject(late)
    await expect(gate.refund({ clientIp: '192.0.2.1' })).rejects.toMatchObject(late)
  })

  it('forgets that it refused, once permits are back', async () => {
    const { hasty, patient } = open({ capacity: 3, window })
    await patient.consume('a')
    server.pause()
    await Promise.all([hasty.consume('a'), hasty.consume('a')])
    const late = hasty.consume('a')
    server.resume()
    // The two before it have taken everything when it is asked.
    await late
    await eventually('both permits are there', async () => {
      const { allowed, degraded } = await hasty.consume('a', 2)
      return allowed && !degraded
    })
  })

  it('gives back no more than it took: refusals and peeks that are answered late change nothing', async () => {
    const { hasty, patient } = open({ capacity: 5, window })
    await patient.consume('a', 5)
    server.pause()
    await Promise.all([hasty.consume('a'), hasty.peek('a'), hasty.consume('b', 6)])
    server.resume()
    // Behind them on the same connection, so that they have been answered when this is.
    expect(await patient.peek('a')).toMatchObject({ allowed: false, remaining: 0 })
    expect(await patient.peek('a')).toMatchObject({ allowed: false, remaining: 0 })
    expect(await patient.peek('b')).toMatchObject({ allowed: true, remaining: 4 })
  })
})
