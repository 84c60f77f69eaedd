/** Cluster nodes that die, and slots that move, during decisions. */
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashSlot } from '../../../src/redis/client/hash-slot.js'
import { eventually } from '../../fixtures/eventually.js'
import {
  capacity,
  exactPeek,
  expectAccounted,
  expectWithinDeadline,
  isExact,
  loadAll,
  openShared,
  ruleSetIds,
  stopAll,
} from '../../fixtures/load/shared-limits.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import type { RedisServer } from '../../servers/redis-server.js'
import { openConnection } from '../../servers/resp.js'

const callers = 6
/** The slot of "foo", which all loads use; one of them also uses "bar", in slot 5061. */
const slot = 12_182

describe('a cluster', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster({ nodeTimeoutMs: 1_000 })
  })
  afterAll(() => cluster.stop())
  const clusterNodes = () => cluster.nodes.map(({ host, port }) => `${host}:${port}`)

  it('that moves a slot under load degrades only decisions with keys on both sides and loses no permit', async () => {
    const shared = await openShared({ clusterNodes: clusterNodes() })
    const outages: unknown[] = []
    shared.longTimeout.on('degraded', (outage) => outages.push(outage))
    const loads = loadAll(shared.longTimeout, { callers })
    await eventually('decisions are made', () => isExact(loads))
    const from = await cluster.primaryOf(slot)
    const to = cluster.nodes.slice(0, 3).find((node) => node !== from) as RedisServer
    const move = await cluster.beginMove(slot, to)
    // One by one, so that bands of one decision are on both sides for a while.
    do await pause(100)
    while ((await move.moveKeys(1)) > 0)
    await move.finish()
    await eventually('the cluster makes all decisions again', () => isExact(loads))
    const tallies = await stopAll(loads)
    expect(tallies.get('one-band')).toMatchObject({ degraded: 0 })
    expect(tallies.get('several-identities')).toMatchObject({ degraded: 0 })
    expect(outages).toEqual([])
    await expectAccounted(shared, tallies, 0)
  })

  it('that loses its scripts on all nodes loads them again and degrades no decision', async () => {
    const shared = await openShared({ clusterNodes: clusterNodes() })
    const loads = loadAll(shared.longTimeout, { callers })
    for (let i = 0; i < 20; i++) {
      await Promise.all(cluster.nodes.map((node) => node.call('SCRIPT', 'FLUSH', 'SYNC')))
      await pause(10)
    }
    const tallies = await stopAll(loads)
    for (const { degraded } of tallies.values()) expect(degraded).toBe(0)
    await expectAccounted(shared, tallies, 0)
  })

  it('that loses a primary keeps deciding, through its replica', async () => {
    const shared = await openShared({ clusterNodes: clusterNodes() })
    // Replication is asynchronous: only data copied before the failover is certain to survive it.
    const userId = Array.from({ length: 100 }, (_, n) => `quiet${n}`).find((name) => hashSlot(name) > 10_922)
    const quiet = { userId, apiKey: 'still' }
    for (const ruleSetId of ruleSetIds) await shared.longTimeout.check(quiet, { ruleSetId, permits: 200 })
    const primary = await cluster.primaryOf(slot)
    const connection = await openConnection(primary.address)
    await connection.call('SET', '{foo}written-last', 1)
    expect(await connection.call('WAIT', 1, 10_000)).toBe(1)
    connection.close()
    const loads = loadAll(shared.gate, { callers })
    await eventually('decisions are made', () => isExact(loads))
    const { killed, promoted } = await cluster.failover(slot)
    await eventually('the replica decides', () => isExact(loads))
    expectWithinDeadline(await stopAll(loads))
    expect(killed).toBe(primary)
    expect(await cluster.primaryOf(slot)).toBe(promoted)
    for (const ruleSetId of ruleSetIds) {
      const { bands } = await exactPeek(shared.longTimeout, quiet, ruleSetId)
      expect(new Set(bands.map(({ remaining }) => remaining))).toEqual(new Set([capacity - 201]))
    }
  })
})
