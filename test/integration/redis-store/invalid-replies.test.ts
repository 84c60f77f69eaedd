/** Replies that a client or a proxy has modified are store failures, never decisions. */
import { Redis } from 'ioredis'
import { createClient } from 'redis4'
import { afterAll, describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import { redisLock } from '../../../src/lock.js'
import { searchIndex } from '../../../src/search-index.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'

const real = new Redis(sharedRedis().uri)
afterAll(() => real.disconnect())

type Change = (reply: unknown) => unknown

/** The real client with modified replies to some commands. */
function clientWith(change: Change, commands: readonly string[] = ['EVALSHA', 'EVAL']): object {
  return new Proxy(real, {
    get(client, name) {
      const value: unknown = Reflect.get(client, name, client)
      if (name !== 'createBuiltinCommand') return typeof value === 'function' ? value.bind(client) : value
      return (command: string) => {
        const { buffer } = client.createBuiltinCommand(command)
        const send = async (...args: Parameters<typeof buffer>) => change(await buffer.apply(client, args))
        return commands.includes(command) ? { buffer: send } : { buffer: buffer.bind(client) }
      }
    },
  })
}

const bytesOf = (reply: unknown): Buffer => (Buffer.isBuffer(reply) ? reply : expect.unreachable())
const numberAt = (place: number, value: number): Change => {
  return (reply) => {
    const changed = Buffer.from(bytesOf(reply))
    changed.writeDoubleLE(value, place * 8)
    return changed
  }
}

const changes: Readonly<Record<string, Change>> = {
  'text of UTF-8': (reply) => bytesOf(reply).toString(),
  'text of Latin-1': (reply) => bytesOf(reply).toString('latin1'),
  'bytes that went through UTF-8': (reply) => Buffer.from(bytesOf(reply).toString()),
  'a byte too few': (reply) => bytesOf(reply).subarray(0, -1),
  'a number too few': (reply) => bytesOf(reply).subarray(0, -8),
  'a number too many': (reply) => Buffer.concat([bytesOf(reply), Buffer.alloc(8)]),
  'the reply twice': (reply) => Buffer.concat([bytesOf(reply), bytesOf(reply)]),
  'another outcome': numberAt(1, 7),
  'allowed in place of rejected, or the other way round': (reply) =>
    numberAt(1, bytesOf(reply).readDoubleLE(8) === 3 ? 0 : 3)(reply),
  'a time that is not a number': numberAt(0, Number.NaN),
  'more permits taken than the capacity': numberAt(1, -1e15),
  'a list around it': (reply) => [[reply]],
  'a number': () => 1,
  nothing: () => null,
}

describe.each(Object.entries(changes))('a client that returns %s', (_, change) => {
  it('makes no decision', async () => {
    const prefix = freshPrefix()
    const limiter = (client: object, onStoreFailure: 'ALLOW' | 'DENY') => {
      const store = redisStore(client, { prefix, timeoutMs: 20_000, failures: 1_000 })
      return createLimiter({ capacity: 2, window: '1h', store, onStoreFailure })
    }
    const decided = [limiter(clientWith(change), 'ALLOW'), limiter(clientWith(change), 'DENY')] as const
    for (let i = 0; i < 4; i++) {
      expect(await decided[0].consume('ada')).toMatchObject({ allowed: true, degraded: true, reason: 'STORE_FAILURE' })
      expect(await decided[1].consume('ada')).toMatchObject({ allowed: false, degraded: true, reason: 'STORE_FAILURE' })
    }
    // The bucket was charged: an unreadable reply cannot be refunded.
    expect(await limiter(real, 'DENY').consume('ada')).toMatchObject({ allowed: false, degraded: false })
  })
})

it('a node-redis 4 client whose replies are strings makes no decision', async () => {
  const client = createClient({ url: sharedRedis().uri })
  await client.connect()
  onTestFinished(() => client.disconnect())
  const strings = { isOpen: true, sendCommand: (command: string[]) => client.sendCommand(command) }
  const store = redisStore(strings, { prefix: freshPrefix(), timeoutMs: 20_000, failures: 1_000 })
  const limiter = createLimiter({ capacity: 100, window: '1h', store, onStoreFailure: 'DENY' })
  const decisions = await Promise.all(Array.from({ length: 600 }, (_, i) => limiter.consume(`user:${i % 7}`)))
  expect(decisions.filter(({ degraded, allowed }) => degraded && !allowed)).toHaveLength(600)
})

it('overrides that are not bytes make no decision', async () => {
  const text: Change = (reply) => (Array.isArray(reply) ? reply.map(text) : Buffer.isBuffer(reply) ? `${reply}` : reply)
  const prefix = freshPrefix()
  const rules = {
    id: 'api',
    rules: [
      {
        id: 'user',
        limitScope: 'USER_ID',
        overrides: true,
        onStoreFailure: 'DENY',
        bands: [{ capacity: 1, window: '1h' }],
      },
    ],
  } as const
  const gateOn = async (client: object) => {
    const gate = await createFluxGate({ rules, store: redisStore(client, { prefix, timeoutMs: 20_000 }) })
    onTestFinished(() => gate.close())
    return gate
  }
  const gate = await gateOn(real)
  await gate.overrides?.put('api', 'user', { key: 'ada', action: 'ALLOW' })
  expect(await gate.check({ userId: 'ada' })).toMatchObject({ allowed: true, reason: 'ALLOW_LISTED' })
  // Only the list of found overrides is modified, not the results.
  const found: Change = (reply) => (Array.isArray(reply) ? [reply[0], ...reply.slice(1).map(text)] : reply)
  const other = await gateOn(clientWith(found))
  expect(await other.check({ userId: 'ada' })).toMatchObject({ allowed: false, degraded: true })
})

describe('a client that returns text for integers', () => {
  const text: Change = (reply) => (Array.isArray(reply) ? reply.map(text) : Buffer.from(String(reply)))

  it('neither grants nor releases a lock', async () => {
    const prefix = freshPrefix()
    const [sound, unsound] = [redisLock(real, { prefix }), redisLock(clientWith(text), { prefix })]
    await expect(unsound.tryAcquire('orders')).rejects.toMatchObject({ code: 'FLUXGATE_STORE_FAILED' })
    const hold = await sound.acquire('invoices')
    await expect(unsound.forceUnlock('invoices')).rejects.toMatchObject({ code: 'FLUXGATE_STORE_FAILED' })
    await hold.release()
    await Promise.all([sound.close(), unsound.close()])
  })
})

it('a node-redis client whose replies are strings finds nothing in a search index', async () => {
  const client = createClient({ url: sharedRedis().uri })
  await client.connect()
  onTestFinished(() => client.disconnect())
  const strings = { isOpen: true, sendCommand: (command: string[]) => client.sendCommand(command) }
  const options = { prefix: freshPrefix(), name: 'products', fields: { price: { kind: 'number' } } } as const
  const [sound, unsound] = [searchIndex(client, options), searchIndex(strings, options)]
  await sound.put('one', { price: 1 })
  await expect(unsound.get('one')).rejects.toMatchObject({ code: 'FLUXGATE_STORE_FAILED' })
  await expect(unsound.find({ by: 'price' })).rejects.toMatchObject({ code: 'FLUXGATE_STORE_FAILED' })
  expect(await sound.get('one')).toEqual({ price: 1 })
})
