/** Nodes of a cluster that hang: late answers of some of them, and the end of a process when all of them do. */
import { Cluster as RedisCluster } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../src/app/create-flux-gate.js'
import { redisStore } from '../../src/app/redis-store.js'
import type { RuleSetInput } from '../../src/rules/input.js'
import { expectClosed, runClosing } from '../load/closing.js'
import { type Cluster, startCluster } from '../servers/cluster.js'
import { eventually } from '../servers/eventually.js'
import { freshPrefix } from '../servers/shared-redis.js'

describe('a cluster', () => {
  let cluster: Cluster
  beforeAll(async () => {
    // None of them is to be declared dead meanwhile.
    cluster = await startCluster({ nodeTimeoutMs: 20_000 })
  })
  afterAll(() => cluster.stop())

  it('of which one node hangs and goes on loses nothing, and neither do those that have answered in time', async () => {
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
    const hasty = await open(200)
    const patient = await open(20_000)
    // "foo" is in slot 12182 and "bar" in 5061.
    const context = { userId: 'foo', apiKey: 'bar' }
    const remaining = async () => (await patient.check(context, { peek: true })).bands.map((band) => band.remaining)
    expect((await patient.check(context)).bands.map((band) => band.remaining)).toEqual([9, 9])
    const node = await cluster.primaryOf(12_182)
    node.pause()
    const decisions = await Promise.all(Array.from({ length: 5 }, () => hasty.check(context)))
    expect(decisions.map(({ allowed, degraded }) => [allowed, degraded])).toEqual(Array(5).fill([true, true]))
    node.resume()
    await eventually('nothing is lost', async () => String(await remaining()) === '8,8')
  })

  it('lets a process that closes under load end by itself, also when everything hangs', async () => {
    const store = { clusterNodes: cluster.nodes.map(({ host, port }) => `${host}:${port}`) }
    expectClosed(await runClosing(store))
    expectClosed(await runClosing(store, { hangs: cluster.nodes.map(({ pid }) => pid) }))
  })
})
