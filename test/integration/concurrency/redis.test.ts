/** Concurrency limits in Redis: several processes, a cluster, and a store that fails. */
import { expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createLimiter } from '../../../src/gate/limiter/create-limiter.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { compareWithModel } from '../../../src/testing/compare-with-model.js'
import { startCluster } from '../../servers/cluster.js'
import { startRedis } from '../../servers/redis-server.js'

const slots = { algorithm: 'CONCURRENCY', capacity: 1, maxHold: '60s' } as const

async function redis() {
  const server = await startRedis()
  onTestFinished(() => server.stop())
  return { server, uri: `redis://127.0.0.1:${server.port}` }
}

it('agrees with the reference model over random charges, releases, renewals and clock steps', async () => {
  const { uri } = await redis()
  const seed = Number(process.env.FLUXGATE_TEST_SEED ?? Date.now() % 1_000_000)
  for (let i = 0; i < 20; i++)
    await compareWithModel((clock) => redisStore(uri, { clock, timeoutMs: 20_000, prefix: `h${i}` }), {
      seed: seed + i,
      steps: 100,
      algorithms: i % 2 === 0 ? ['CONCURRENCY'] : ['CONCURRENCY', 'TOKEN_BUCKET', 'SLIDING_WINDOW_LOG'],
      maxCapacity: 5,
    })
})

it('admits a waiting request soon after another process has released its slot', async () => {
  const { uri } = await redis()
  const [one, other] = [0, 1].map(() =>
    createLimiter({ ...slots, onLimitExceed: 'WAIT_FOR_REFILL', maxWaitMs: 30_000, store: uri }),
  ) as [ReturnType<typeof createLimiter>, ReturnType<typeof createLimiter>]
  onTestFinished(async () => {
    await one.close()
    await other.close()
  })
  const held = await one.acquire('a')
  const order: number[] = []
  const waiting = [1, 2, 3].map((number) =>
    other.run('a', async () => {
      order.push(number)
    }),
  )
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(order).toEqual([])
  await held.release()
  expect((await Promise.all(waiting)).every(({ ran }) => ran)).toBe(true)
  expect(order).toEqual([1, 2, 3])
})

it('releases the slots of other nodes when one node of a cluster rejects', async () => {
  const cluster = await startCluster()
  onTestFinished(() => cluster.stop())
  const gate = await createFluxGate({
    rules: {
      id: 'api',
      rules: [
        { id: 'user', limitScope: 'USER_ID', bands: [{ ...slots, capacity: 5 }] },
        { id: 'all', limitScope: 'GLOBAL', bands: [slots] },
      ],
    },
    store: { clusterNodes: cluster.nodes.map(({ port }) => `127.0.0.1:${port}`) },
    resilience: { timeoutMs: 20_000 },
  })
  onTestFinished(() => gate.close())
  const first = await gate.acquire({ userId: 'u1' })
  expect(first.decision.allowed).toBe(true)
  for (let i = 0; i < 10; i++) expect((await gate.acquire({ userId: `u${i}` })).decision.allowed).toBe(false)
  for (let i = 2; i < 10; i++)
    expect((await gate.look({ ruleSetId: 'api', ruleId: 'user', key: `u${i}` }))[0]?.remaining).toBe(5)
  expect(await first.release()).toBe(true)
  expect((await gate.look({ ruleSetId: 'api', ruleId: 'user', key: 'u1' }))[0]?.remaining).toBe(5)
})

it('limits in this process while Redis fails, and releases such a hold where it was taken', async () => {
  const { server, uri } = await redis()
  const limiter = createLimiter({ ...slots, store: uri })
  onTestFinished(() => limiter.close())
  expect((await limiter.acquire('a')).decision).toMatchObject({ allowed: true, degraded: false })
  await server.stop()
  const local = await limiter.acquire('b')
  expect(local.decision).toMatchObject({ allowed: true, degraded: true })
  expect((await limiter.acquire('b')).decision).toMatchObject({ allowed: false, degraded: true })
  expect(await local.release()).toBe(true)
  expect((await limiter.acquire('b')).decision).toMatchObject({ allowed: true, degraded: true })
})
