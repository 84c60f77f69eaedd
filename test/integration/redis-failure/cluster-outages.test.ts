/** Cluster nodes that hang: late replies of some of them, and the exit of a process when all of them hang. */
import { Cluster as RedisCluster } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { RequestContext } from '../../../src/core/request-context.js'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import { openRedis } from '../../../src/redis/client/open/open-redis.js'
import type { RuleSetInput } from '../../../src/rules/schema/input.js'
import { acrossSlots } from '../../../src/stores/redis/across-slots.js'
import { RedisBuckets } from '../../../src/stores/redis/redis-buckets.js'
import { redisStore } from '../../../src/stores/redis/redis-store.js'
import { manualClock } from '../../../src/testing/manual-clock.js'
import { eventually } from '../../fixtures/eventually.js'
import { expectClosed, runClosing } from '../../fixtures/load/closing.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { freshPrefix } from '../../servers/shared-redis.js'

describe('a cluster', () => {
  let cluster: Cluster
  beforeAll(async () => {
    // No node may be declared dead during the test.
    cluster = await startCluster({ nodeTimeoutMs: 20_000 })
  })
  afterAll(() => cluster.stop())

  it('with a node that hangs and resumes loses no permits, on that node or the others', async () => {
    const client = new RedisCluster(cluster.nodes.map(({ host, port }) => ({ host, port })))
    onTestFinished(() => client.disconnect())
    const bands = [{ capacity: 10, window: '30d' }]
    const rules: RuleSetInput = {
      id: 'api',
      rules: [
        { id: 'user', limitScope: 'USER_ID', bands },
        { id: 'key', limitScope: 'API_KEY', bands },
      ],
    }
    const prefix = freshPrefix()
    const open = async (timeoutMs: number) => {
      const gate = await createFluxGate({ rules, store: redisStore(client, { prefix, timeoutMs, openMs: 50 }) })
      onTestFinished(() => gate.close())
      return gate
    }
    const shortTimeout = await open(200)
    const longTimeout = await open(20_000)
    // "foo" is in slot 12182 and "bar" in 5061.
    const context = { userId: 'foo', apiKey: 'bar' }
    const remaining = async () => (await longTimeout.check(context, { peek: true })).bands.map((band) => band.remaining)
    expect((await longTimeout.check(context)).bands.map((band) => band.remaining)).toEqual([9, 9])
    const node = await cluster.primaryOf(12_182)
    node.pause()
    const decisions = await Promise.all(Array.from({ length: 5 }, () => shortTimeout.check(context)))
    expect(decisions.map(({ allowed, degraded }) => [allowed, degraded])).toEqual(Array(5).fill([true, true]))
    node.resume()
    await eventually('no permit is lost', async () => String(await remaining()) === '8,8')
  })

  it('with a node that hangs makes exact decisions about keys on the other nodes', async () => {
    const rules: RuleSetInput = {
      id: 'api',
      rules: [{ id: 'user', limitScope: 'USER_ID', bands: [{ capacity: 1_000_000, window: '30d' }] }],
    }
    const connection = openRedis({ clusterNodes: cluster.nodes.map(({ host, port }) => `${host}:${port}`) })
    const buckets = new RedisBuckets(connection, { prefix: freshPrefix() })
    const store = acrossSlots(buckets, (key) => buckets.slotOf(key))
    // The gate adds deadlines with a manual clock to such a store, so a slow reply is never treated as a failure.
    const clock = manualClock(Date.now())
    const gate = await createFluxGate({ rules, clock, store, resilience: { timeoutMs: 200 } })
    onTestFinished(() => gate.close().then(() => connection.close()))
    const [here, there] = [{ userId: 'bar' }, { userId: 'foo' }]
    const isExact = async (context: RequestContext) => !(await gate.check(context)).degraded
    await eventually('both nodes decide', async () => (await isExact(here)) && (await isExact(there)))
    const node = await cluster.primaryOf(12_182)
    node.pause()
    for (let round = 0; round < 20; round++) {
      const hung = Array.from({ length: 10 }, () => gate.check(there))
      clock.advance(100)
      expect(await isExact(here)).toBe(true)
      clock.advance(100)
      expect((await Promise.all(hung)).every(({ degraded }) => degraded)).toBe(true)
      expect(await isExact(here)).toBe(true)
    }
    node.resume()
    await eventually('both nodes decide', async () => (await isExact(there)) && (await isExact(here)))
  })

  it('does not keep a process that closes under load from exiting, even if all nodes hang', async () => {
    const store = { clusterNodes: cluster.nodes.map(({ host, port }) => `${host}:${port}`) }
    expectClosed(await runClosing(store))
    expectClosed(await runClosing(store, { hangs: cluster.nodes.map(({ pid }) => pid) }))
  })
})
