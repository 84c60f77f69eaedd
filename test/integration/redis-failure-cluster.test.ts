/** Nodes of a cluster that hang: late answers of some of them, and the end of a process when all of them do. */
import { Cluster as RedisCluster } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../src/app/create-flux-gate.js'
import { redisStore } from '../../src/app/redis-store.js'
import type { RuleSetInput } from '../../src/rules/input.js'
import { expectClosed, runClosing } from '../load/closing.js'
import { startLoad } from '../load/load.js'
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

  it('of which one node hangs still decides about identities on the others', async () => {
    const rules: RuleSetInput = {
      id: 'api',
      rules: [{ id: 'user', limitScope: 'USER_ID', bands: [{ capacity: 1_000_000, window: '30d' }] }],
    }
    const clusterNodes = cluster.nodes.map(({ host, port }) => `${host}:${port}`)
    const gate = await createFluxGate({ rules, store: { clusterNodes, timeoutMs: 200 } })
    onTestFinished(() => gate.close())
    const here = startLoad(() => gate.check({ userId: 'bar' }), { callers: 10, pauseMs: 5 })
    const there = startLoad(() => gate.check({ userId: 'foo' }), { callers: 10, pauseMs: 5 })
    await eventually('decisions are made', () => Math.min(here.tally.exactInARow, there.tally.exactInARow) > 20)
    const node = await cluster.primaryOf(12_182)
    node.pause()
    await eventually('some are made without it', () => there.tally.degraded > 50)
    node.resume()
    await eventually('all are made with it', () => there.tally.exactInARow > 20)
    await there.stop()
    const { asked, degraded, errors } = await here.stop()
    expect(errors).toEqual([])
    // None, but for those that a busy machine keeps from being answered in time.
    expect(degraded).toBeLessThan(asked / 10)
  })

  it('lets a process that closes under load end by itself, also when everything hangs', async () => {
    const store = { clusterNodes: cluster.nodes.map(({ host, port }) => `${host}:${port}`) }
    expectClosed(await runClosing(store))
    expectClosed(await runClosing(store, { hangs: cluster.nodes.map(({ pid }) => pid) }))
  })
})
