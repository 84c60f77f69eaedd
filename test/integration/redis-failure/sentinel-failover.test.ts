/** A server that is killed, restarted, loses its scripts or is replaced by another one while decisions are made. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
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
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'
import { openConnection } from '../../servers/resp.js'
import { quickFailover, startSentinel } from '../../servers/sentinel.js'

const callers = 6

describe('one server', () => {
  it('that is killed and restarted decides again, and admits no permit twice', async () => {
    // Redis writes to the log before it replies, so a killed process loses nothing that was answered.
    const server = await stopAfterTest(startRedis({ config: ['appendonly yes', 'appendfsync no'] }))
    const shared = await openShared({ uri: server.uri })
    // No call times out, so only those in flight at the time of a kill can be charged without an answer.
    const loads = loadAll(shared.longTimeout, { callers })
    await eventually('decisions are made', () => isExact(loads))
    for (let round = 0; round < 2; round++) {
      await server.kill()
      await eventually('they are made without it', () =>
        [...loads.values()].every(({ tally }) => tally.exactInARow === 0),
      )
      await server.restart()
      await eventually('it decides again', () => isExact(loads))
    }
    const tallies = await stopAll(loads)
    await expectAccounted(shared, tallies, 2 * callers)
  })

  it('that loses its scripts gets them again, and no decision is degraded', async () => {
    const server = await stopAfterTest(startRedis())
    const shared = await openShared({ uri: server.uri })
    const loads = loadAll(shared.longTimeout, { callers })
    const administrator = await openConnection(server.address)
    for (let i = 0; i < 50; i++) {
      await administrator.call('SCRIPT', 'FLUSH', 'SYNC')
      await pause(10)
    }
    administrator.close()
    const tallies = await stopAll(loads)
    for (const { degraded } of tallies.values()) expect(degraded).toBe(0)
    await expectAccounted(shared, tallies, 0)
  })
})

/** Waits until all writes of the primary have reached its replicas. */
async function replicated(primary: RedisServer): Promise<void> {
  const connection = await openConnection(primary.address)
  await connection.call('SET', 'written-last', 1)
  expect(await connection.call('WAIT', 2, 10_000)).toBe(2)
  connection.close()
}

describe('servers behind sentinels', () => {
  it('fail over: decisions go on, and the new primary makes them', async () => {
    const group = await stopAfterTest(startSentinel(quickFailover))
    const sentinels = group.sentinels.map(({ host, port }) => `${host}:${port}`)
    const shared = await openShared({ sentinels, sentinelName: group.name })
    // Replication is asynchronous: only what had been copied before the failover is sure to survive it.
    const quiet = { userId: 'quiet', apiKey: 'still' }
    for (const ruleSetId of ruleSetIds) await shared.longTimeout.check(quiet, { ruleSetId, permits: 400 })
    const loads = loadAll(shared.gate, { callers })
    await eventually('decisions are made', () => isExact(loads))
    await replicated(await group.primary())
    const old = await group.killPrimary()
    await group.waitForNewPrimary(old)
    await eventually('the new primary decides', () => isExact(loads))
    expectWithinDeadline(await stopAll(loads))
    for (const ruleSetId of ruleSetIds) {
      const { bands } = await exactPeek(shared.longTimeout, quiet, ruleSetId)
      expect(new Set(bands.map(({ remaining }) => remaining))).toEqual(new Set([capacity - 401]))
    }
  })
})
