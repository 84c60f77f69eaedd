/** A server that is killed, restarted, emptied of scripts or replaced by another one while decisions are made. */
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { capacity, expectAccounted, isExact, loadAll, openShared, ruleSetIds, stopAll } from '../load/shared-limits.js'
import { eventually } from '../servers/eventually.js'
import { type RedisServer, startRedis } from '../servers/redis-server.js'
import { openConnection } from '../servers/resp.js'
import { startSentinel } from '../servers/sentinel.js'
import { stopAfterTest } from '../servers/stop-after-test.js'

/** A promise: so soon after Redis is back, it decides again. */
const backWithinMs = 2_000
const callers = 6

describe('one server', () => {
  it('that is killed and comes back is used again within two seconds, and admits nothing twice', async () => {
    // What it has answered it has written before; a process that is killed does not take that with it.
    const server = await stopAfterTest(startRedis({ config: ['appendonly yes', 'appendfsync no'] }))
    const shared = await openShared({ uri: server.uri })
    const loads = loadAll(shared.gate, { callers })
    await eventually('decisions are made', () => isExact(loads))
    for (let round = 0; round < 2; round++) {
      await server.kill()
      await eventually('they are made without it', () =>
        [...loads.values()].every(({ tally }) => tally.exactInARow === 0),
      )
      await server.restart()
      await eventually('it decides again', () => isExact(loads), backWithinMs)
    }
    const tallies = await stopAll(loads)
    // In each round those under way may have been charged without an answer.
    await expectAccounted(shared, tallies, 2 * callers)
  })

  it('that forgets the script is told it again, and nobody notices', async () => {
    const server = await stopAfterTest(startRedis())
    const shared = await openShared({ uri: server.uri })
    const loads = loadAll(shared.patient, { callers })
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

/** What the primary has written up to now is with all its replicas. */
async function replicated(primary: RedisServer): Promise<void> {
  const connection = await openConnection(primary.address)
  await connection.call('SET', 'written-last', 1)
  expect(await connection.call('WAIT', 2, 10_000)).toBe(2)
  connection.close()
}

describe('servers behind sentinels', () => {
  it('replace each other: decisions go on, and within two seconds after it the new primary makes them', async () => {
    const group = await stopAfterTest(startSentinel())
    const sentinels = group.sentinels.map(({ host, port }) => `${host}:${port}`)
    const shared = await openShared({ sentinels, sentinelName: group.name })
    // Replicas follow a moment later, so that only of what had been copied can it be said that it is not forgotten.
    const quiet = { userId: 'quiet', apiKey: 'still' }
    for (const ruleSetId of ruleSetIds) await shared.patient.check(quiet, { ruleSetId, permits: 400 })
    const loads = loadAll(shared.gate, { callers })
    await eventually('decisions are made', () => isExact(loads))
    await replicated(await group.primary())
    const old = await group.killPrimary()
    await group.waitForNewPrimary(old)
    await eventually('the new primary decides', () => isExact(loads), backWithinMs)
    await stopAll(loads)
    for (const ruleSetId of ruleSetIds) {
      const { degraded, bands } = await shared.patient.check(quiet, { ruleSetId, peek: true })
      expect(degraded).toBe(false)
      expect(new Set(bands.map(({ remaining }) => remaining))).toEqual(new Set([capacity - 401]))
    }
  })
})
