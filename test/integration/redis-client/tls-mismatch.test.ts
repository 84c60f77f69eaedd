/** TLS on one side only: every entry point with a Redis address reports it instead of waiting. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import { checkRedis } from '../../../src/program/doctor/redis-checks.js'
import { bulkLoad } from '../../../src/redis/bulk/open-bulk-load.js'
import type { RedisOptions } from '../../../src/redis/client/open/target.js'
import { redisLock } from '../../../src/redis/lock/create-locks.js'
import { searchIndex } from '../../../src/redis/search-index/create-search-index.js'
import { redisRuleStore } from '../../../src/rules/redis/redis-rule-store.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'
import { selfSigned } from '../../servers/self-signed.js'

/** Longer than the test timeout, so these timeouts cause no failure. */
const timeoutMs = 60_000

interface Closable {
  close(): Promise<unknown>
}

async function closing<T extends Closable>(opened: T, use: (opened: T) => Promise<unknown>): Promise<unknown> {
  try {
    return await use(opened)
  } finally {
    await opened.close()
  }
}

const rules = { id: 'api', rules: [{ id: 'all', bands: [{ capacity: 1, window: '1s' }] }] }
const times = { timeoutMs, connectTimeoutMs: timeoutMs }

/** Each fails only because of the connection. */
const entries: readonly (readonly [name: string, use: (address: RedisOptions) => Promise<unknown>])[] = [
  ['createFluxGate', (address) => createFluxGate({ rules, store: { ...address, ...times } })],
  ['redisStore', (address) => closing(redisStore(address, times), (store) => store.ready())],
  [
    'createLimiter',
    (address) =>
      closing(createLimiter({ capacity: 1, window: '1s', store: redisStore(address, times) }), (limiter) =>
        limiter.reset('k'),
      ),
  ],
  ['redisLock', (address) => closing(redisLock(address, { timeoutMs }), (lock) => lock.tryAcquire('k'))],
  [
    'searchIndex',
    (address) => closing(searchIndex(address, { name: 'items', fields: {}, timeoutMs }), (index) => index.get('x')),
  ],
  ['bulkLoad', (address) => bulkLoad(address, [['SET', 'a', '1']])],
]

describe.each([
  ['rediss:// and a server without TLS', undefined, 'the server does not use TLS. Use redis:// instead of rediss://'],
  ['redis:// and a server with TLS', selfSigned(), 'the server requires TLS. Use rediss:// instead of redis://'],
] as const)('%s', (_, tls, sentence) => {
  let server: RedisServer
  let uri: string
  beforeAll(async () => {
    server = await startRedis(tls === undefined ? {} : { tls })
    uri = `${tls === undefined ? 'rediss' : 'redis'}://${server.host}:${server.port}`
  })
  afterAll(() => server.stop())

  it.each(entries)('%s fails with FLUXGATE_STORE_MISCONFIGURED', async (_, use) => {
    const error = { code: 'FLUXGATE_STORE_MISCONFIGURED', message: expect.stringContaining(sentence) }
    await expect(use({ uri })).rejects.toMatchObject(error)
  })

  it('reload errors contain this reason', async () => {
    const reading = closing(redisRuleStore(uri, { timeoutMs }), (store) => store.getRuleSet('api'))
    await expect(reading).rejects.toMatchObject({
      code: 'FLUXGATE_RULES_UNREADABLE',
      message: expect.stringContaining(sentence.split('.')[0] ?? ''),
    })
  })

  it('the doctor command reports it', async () => {
    const [finding] = await checkRedis({ uri }, { prefix: 'fluxgate', timeoutMs: 100 })
    expect(finding).toMatchObject({ name: 'redis', status: 'fail', message: expect.stringContaining(sentence) })
  })

  it('cluster nodes and sentinels are checked too', async () => {
    const nodes = [`${server.host}:${server.port}`]
    for (const address of [{ clusterNodes: nodes }, { sentinels: nodes }])
      await expect(
        closing(redisStore({ ...address, tls: tls === undefined }, times), (store) => store.ready()),
      ).rejects.toMatchObject({
        code: 'FLUXGATE_STORE_MISCONFIGURED',
        message: expect.stringContaining(sentence),
      })
  })
})
