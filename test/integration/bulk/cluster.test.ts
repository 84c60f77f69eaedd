/** Bulk loading into a cluster: every record reaches the node that owns its slot, even while slots move. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { bulkLoad } from '../../../src/bulk.js'
import type { Command } from '../../../src/redis/bulk/commands/writer.js'
import { hashSlot } from '../../../src/redis/client/hash-slot.js'
import { eventually } from '../../fixtures/eventually.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import type { RedisServer } from '../../servers/redis-server.js'
import { freshPrefix } from '../../servers/shared-redis.js'

let cluster: Cluster
beforeAll(async () => {
  cluster = await startCluster({ nodeTimeoutMs: 1_000 })
})
afterAll(() => cluster.stop())

const nodesOf = () => cluster.nodes.slice(0, 2).map(({ host, port }) => ({ host, port }))
const primariesOf = () => Promise.all([0, 8_000, 16_383].map((slot) => cluster.primaryOf(slot)))
const anotherPrimary = async (owner: RedisServer): Promise<RedisServer> =>
  (await primariesOf()).find((node) => node !== owner) as RedisServer
const valueAt = async (key: string) => (await cluster.primaryOf(hashSlot(key))).call('GET', key)

it.each([false, true])('splits the records by slot owner, fast: %s', async (fast) => {
  const prefix = freshPrefix()
  const commands = Array.from({ length: 3_000 }, (_, i): Command => ['SET', `${prefix}${i}`, `v${i}`])
  commands[1_500] = ['LPUSH', `${prefix}7`, 'x']
  commands[1_501] = ['MSET', `${prefix}a`, '1', `${prefix}b`, '2']
  const report = await bulkLoad({ clusterNodes: nodesOf() }, commands, { fast })
  expect(report).toMatchObject({ records: 3_000, done: 2_998, failed: 2 })
  expect(report.failures).toEqual([
    { line: 1_501, message: expect.stringMatching(/^WRONGTYPE/) },
    { line: 1_502, message: expect.stringMatching(/^CROSSSLOT/) },
  ])
  for (const i of [0, 1, 2, 3, 1_499, 2_999]) expect(await valueAt(`${prefix}${i}`)).toBe(`v${i}`)
})

it('detects that a server is a node of a cluster', async () => {
  const prefix = freshPrefix()
  const commands = Array.from({ length: 50 }, (_, i): Command => ['SET', `${prefix}${i}`, `v${i}`])
  expect(await bulkLoad(cluster.nodes[0]?.uri ?? '', commands)).toMatchObject({ done: 50, failed: 0 })
  expect(await valueAt(`${prefix}49`)).toBe('v49')
})

it('follows a slot that moves and keeps the order of records with the same key', async () => {
  const key = `{${freshPrefix()}}`
  const slot = hashSlot(key)
  const from = await cluster.primaryOf(slot)
  const to = await anotherPrimary(from)
  async function* commands(): AsyncGenerator<Command> {
    let moving: Promise<void> | undefined
    for (let i = 1; i <= 3_000; i++) {
      yield ['SET', `${key}last`, String(i)]
      yield ['RPUSH', `${key}list`, String(i)]
      yield ['SET', `${freshPrefix()}${i}`, 'elsewhere']
      if (i === 500) moving = cluster.moveSlot(slot, to)
      if (i % 20 === 0) await sleep(1)
    }
    await moving
    yield ['RPUSH', `${key}list`, 'after']
  }
  const report = await bulkLoad({ clusterNodes: nodesOf() }, commands())
  expect(report).toMatchObject({ records: 9_001, done: 9_001, failed: 0 })
  expect(await to.call('GET', `${key}last`)).toBe('3000')
  const list = (await to.call('LRANGE', `${key}list`, 0, -1)) as string[]
  expect(list).toEqual([...Array.from({ length: 3_000 }, (_, i) => String(i + 1)), 'after'])
})

it('follows ASK redirects while a slot is migrating', async () => {
  const key = `{${freshPrefix()}}`
  const slot = hashSlot(key)
  const from = await cluster.primaryOf(slot)
  await from.call('SET', `${key}here`, 'old')
  const move = await cluster.beginMove(slot, await anotherPrimary(from))
  const commands = [
    ['SET', `${key}here`, 'new'],
    ['SET', `${key}there`, '1'],
    ['APPEND', `${key}there`, '2'],
  ]
  expect(await bulkLoad({ clusterNodes: nodesOf() }, commands)).toMatchObject({ done: 3, failed: 0 })
  await move.finish()
  expect(await move.to.call('MGET', `${key}here`, `${key}there`)).toEqual(['new', '12'])
})

it('reports the first unanswered record as the resume point when a node dies', async () => {
  const prefix = freshPrefix()
  const slot = hashSlot(`${prefix}500`)
  const primaries = await primariesOf()
  const stored = async () => (await Promise.all(primaries.map((node) => node.call('KEYS', `${prefix}*`)))).flat().length
  let failover: ReturnType<Cluster['failover']> | undefined
  async function* commands(): AsyncGenerator<Command> {
    for (let i = 1; ; i++) {
      yield ['SET', `${prefix}${i}`, String(i)]
      if (i === 500) {
        await eventually('500 records are stored', async () => (await stored()) === 500)
        // A node sends its replies before it reads further commands, so all 500 replies are sent once another command
        // returns.
        await stored()
        failover = cluster.failover(slot)
      }
      if (i % 20 === 0) await sleep(1)
    }
  }
  const report = await bulkLoad({ clusterNodes: nodesOf() }, commands())
  expect(report.stoppedBy?.code).toBe('FLUXGATE_BULK_STOPPED')
  expect(report.failed).toBe(0)
  const { resumeFromLine = 0 } = report
  expect(resumeFromLine).toBeGreaterThan(500)
  // Every record before the resume point has a reply; the record at the resume point has none.
  expect(report.done).toBeGreaterThanOrEqual(resumeFromLine - 1)
  expect(report.done).toBeLessThan(report.records)
  await failover
  const rest = Array.from({ length: report.records }, (_, i): Command => ['SET', `${prefix}${i + 1}`, String(i + 1)])
  const again = await bulkLoad({ clusterNodes: nodesOf() }, rest, { fromLine: resumeFromLine })
  expect(again).toMatchObject({ records: report.records - resumeFromLine + 1, failed: 0 })
})
