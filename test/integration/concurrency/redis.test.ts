/** Concurrency limits in Redis: several processes, a cluster, and a store that fails. */
import { spawn } from 'node:child_process'
import { expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { createLimiter, type Limiter } from '../../../src/gate/limiter/create-limiter.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { compareWithModel } from '../../../src/testing/compare-with-model.js'
import { eventually } from '../../fixtures/eventually.js'
import { startCluster } from '../../servers/cluster.js'
import { startRedis } from '../../servers/redis-server.js'

const slots = { algorithm: 'CONCURRENCY', capacity: 1, maxHold: '60s' } as const
const longTimeout = { timeoutMs: 20_000 }

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

it('admits waiting requests of all processes in order of arrival', async () => {
  const { server, uri } = await redis()
  const limiters = [0, 1, 2].map(() =>
    createLimiter({
      ...slots,
      onLimitExceed: 'WAIT_FOR_REFILL',
      maxWaitMs: 60_000,
      store: redisStore(uri, longTimeout),
    }),
  )
  onTestFinished(async () => {
    for (const limiter of limiters) await limiter.close()
  })
  const held = await (limiters[0] as Limiter).acquire('a')
  const [key] = (await server.call('KEYS', 'fluxgate:{a}:*')) as [string]
  const lengthOf = async (): Promise<number> => Number(await server.call('STRLEN', key))
  const empty = await lengthOf()
  const order: number[] = []
  const waiting: Promise<unknown>[] = []
  const leaving = new AbortController()
  // Neighbours in the queue are of different processes, and of the same one.
  for (const [number, process] of [0, 1, 1, 2, 0, 0, 2, 1].entries()) {
    const limiter = limiters[process] as Limiter
    const signal = number === 3 ? leaving.signal : undefined
    const wait = limiter.wait('a', { maxWaitMs: 60_000, ...(signal && { signal }) }).then(async ({ holdId }) => {
      order.push(number)
      await limiter.release(holdId as string)
    })
    waiting.push(wait.catch(() => {}))
    await eventually(`request ${number} waits`, async () => (await lengthOf()) === empty + 17 * (number + 1))
  }
  leaving.abort()
  await eventually('the aborted request has left', async () => (await lengthOf()) === empty + 17 * 7)
  await held.release()
  await Promise.all(waiting)
  expect(order).toEqual([0, 1, 2, 4, 5, 6, 7])
  await eventually('nothing is left', async () => Number(await server.call('EXISTS', key)) === 0)
})

it('admits the next request if the process of the first one has ended', async () => {
  const { server, uri } = await redis()
  const options = { ...slots, onLimitExceed: 'WAIT_FOR_REFILL', maxWaitMs: 60_000 } as const
  const limiter = createLimiter({ ...options, store: redisStore(uri, longTimeout) })
  onTestFinished(() => limiter.close())
  const held = await limiter.acquire('a')
  const program = `
    import { createLimiter } from ${JSON.stringify(new URL('../../../dist/index.js', import.meta.url).href)}
    await createLimiter({ ...${JSON.stringify(options)}, store: ${JSON.stringify(uri)} }).acquire('a')`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program])
  const [key] = (await server.call('KEYS', 'fluxgate:{a}:*')) as [string]
  await eventually('it waits', async () => Number(await server.call('STRLEN', key)) === 19 + 2 * 17)
  const next = limiter.acquire('a')
  await eventually('the next one waits', async () => Number(await server.call('STRLEN', key)) === 19 + 3 * 17)
  child.kill('SIGKILL')
  await held.release()
  expect((await next).decision).toMatchObject({ allowed: true, degraded: false })
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
