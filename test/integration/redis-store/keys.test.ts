/** How keys are called in Redis, and where a cluster keeps them. */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import { hashSlot } from '../../../src/redis/client/hash-slot.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { band, chargeOf, group, startMs } from '../../../src/testing/fixtures.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const client = new Redis(sharedRedis().uri)
afterAll(() => client.quit())

const abbreviation = (...tuple: readonly string[]) =>
  createHash('sha256').update(JSON.stringify(tuple)).digest('base64url').slice(0, 6)

describe('the keys of a decision', () => {
  it('name the identity, and the rule set, the rule and its generation by a digest', async () => {
    const prefix = freshPrefix().slice(0, -1)
    const store = redisStore(client, { prefix, clock: manualClock(startMs), timeoutMs: 20_000 })
    const rule = {
      ...group('login', [band({ label: 'a' }), band({ label: 'b:c', algorithm: 'SLIDING_WINDOW_LOG' })]),
      generation: '3.x',
    }
    await store.charge([chargeOf(rule, '2001:db8::1'), chargeOf(group('all', [band()]), '{everyone}')], false)
    expect((await client.keys(`${prefix}*`)).sort()).toEqual([
      `${prefix}:{%7Beveryone%7D}:${abbreviation('set', 'all', '1')}`,
      `${prefix}:{2001%3Adb8%3A%3A1}:${abbreviation('set', 'login', '3.x')}`,
    ])
  })

  it('begin with "fluxgate" unless another prefix is given', async () => {
    const key = `key-${freshPrefix()}`
    const limiter = createLimiter({ capacity: 2, window: '1m', store: redisStore(client, { timeoutMs: 20_000 }) })
    await limiter.consume(key)
    const [name = ''] = await client.keys(`fluxgate:{${key.replaceAll(':', '%3A')}}:*`)
    expect(name).toMatch(/^fluxgate:\{.*\}:[\w-]{6}$/)
    await limiter.reset(key)
    expect(await client.exists(name)).toBe(0)
  })

  it('of unusual identities are distinct, in Redis as well', async () => {
    const prefix = freshPrefix()
    const store = redisStore(client, { prefix, clock: manualClock(startMs), timeoutMs: 20_000 })
    const rule = group('rule', [band({ capacity: 1 })])
    const odd = [
      '',
      ' ',
      ':',
      '{',
      '}',
      '{}',
      '%',
      '%25',
      '\n',
      '\r\n',
      '\u0000',
      '\ud800',
      '\ud801',
      '\udc00',
      '\ufffd',
    ]
    const identities = [
      ...odd,
      '\ud83d\ude00',
      'é',
      'e\u0301',
      '\u00a0',
      'x'.repeat(128),
      'x'.repeat(129),
      'x'.repeat(10_000),
    ]
    const results = await Promise.all(identities.map((key) => store.charge([chargeOf(rule, key)], false)))
    expect(results.every(({ granted }) => granted)).toBe(true)
    expect(await client.keys(`${prefix}*`)).toHaveLength(identities.length)
  })
})

describe('the slot of a key', () => {
  let server: RedisServer
  let node: Redis
  beforeAll(async () => {
    server = await startRedis({ config: ['cluster-enabled yes'] })
    node = new Redis(server.uri)
  })
  afterAll(async () => {
    node.disconnect()
    await server.stop()
  })

  it('equals CLUSTER KEYSLOT of the server', async () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '{}',
      'a',
      'foo',
      ':',
      'ä',
      '한국',
      '\ud83d\ude00',
      '\u0000',
      'x'.repeat(50),
    )
    const keys = fc.sample(
      fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join('')),
      500,
    )
    const slots = await Promise.all(keys.map((key) => node.cluster('KEYSLOT', key)))
    for (const [i, key] of keys.entries()) expect([key, hashSlot(key)]).toEqual([key, slots[i]])
    expect(await node.cluster('KEYSLOT', '한국')).toBe(11_076)
  })
})
