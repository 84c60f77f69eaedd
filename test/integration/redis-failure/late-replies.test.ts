/** Replies after their deadline: they admit no request, and their charges are refunded. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createLimiter, type LimiterOptions } from '../../../src/gate/limiter/create-limiter.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { eventually } from '../../fixtures/eventually.js'
import { clientOf, ownRedis } from '../../servers/own-redis.js'
import { freshPrefix } from '../../servers/shared-redis.js'

const timeoutMs = 200
/** So long that nothing is refilled while a test runs. */
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

describe('a server that hangs and resumes', async () => {
  const server = await ownRedis()
  const client = clientOf(server)

  /** Two limiters on the same buckets: one with a short timeout and one that waits for replies. */
  const open = (rule: LimiterOptions) => {
    const prefix = freshPrefix()
    const shortTimeout = createLimiter({ ...rule, store: redisStore(client, { prefix, timeoutMs, openMs: 50 }) })
    const longTimeout = createLimiter({ ...rule, store: redisStore(client, { prefix, timeoutMs: 20_000 }) })
    onTestFinished(() => Promise.all([shortTimeout.close(), longTimeout.close()]).then(() => {}))
    return { shortTimeout, longTimeout }
  }

  it.each(kinds)('%s: refunds charges of calls that timed out', async (_, rule) => {
    const { shortTimeout, longTimeout } = open(rule)
    expect(await longTimeout.consume('a', 3)).toMatchObject({ allowed: true, degraded: false, remaining: 7 })
    server.pause()
    const decisions = await Promise.all(Array.from({ length: 5 }, () => shortTimeout.consume('a')))
    expect(decisions.map(({ allowed, degraded }) => [allowed, degraded])).toEqual(Array(5).fill([true, true]))
    server.resume()
    // As before, except for the permit of this peek.
    await eventually('no permit is lost', async () => (await longTimeout.peek('a')).remaining === 6)
    const rest = await Promise.all(Array.from({ length: 9 }, () => longTimeout.consume('a')))
    expect(rest.filter(({ allowed }) => allowed)).toHaveLength(7)
    expect(rest.filter(({ degraded }) => degraded)).toEqual([])
  })

  it('does not delay a concurrent reset', async () => {
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

  it('drops a cached rejection once permits are refunded', async () => {
    const { shortTimeout, longTimeout } = open({ capacity: 3, window })
    await longTimeout.consume('a')
    server.pause()
    await Promise.all([shortTimeout.consume('a'), shortTimeout.consume('a')])
    const late = shortTimeout.consume('a')
    server.resume()
    // The two earlier calls have taken all permits when this one is decided.
    await late
    await eventually('both permits are refunded', async () => {
      const { allowed, degraded } = await shortTimeout.consume('a', 2)
      return allowed && !degraded
    })
  })

  it('refunds no more than was charged: late rejections and peeks change nothing', async () => {
    const { shortTimeout, longTimeout } = open({ capacity: 5, window })
    await longTimeout.consume('a', 5)
    server.pause()
    await Promise.all([shortTimeout.consume('a'), shortTimeout.peek('a'), shortTimeout.consume('b', 6)])
    server.resume()
    // Behind them on the same connection, so they have been answered when this call is.
    expect(await longTimeout.peek('a')).toMatchObject({ allowed: false, remaining: 0 })
    expect(await longTimeout.peek('a')).toMatchObject({ allowed: false, remaining: 0 })
    expect(await longTimeout.peek('b')).toMatchObject({ allowed: true, remaining: 4 })
  })
})
