/** Connections that FluxGate opens to a cluster and to servers behind sentinels. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { wrapRedisError } from '../../../src/redis/client/errors.js'
import { type OpenedRedis, openRedis } from '../../../src/redis/client/open/open-redis.js'
import { eventually } from '../../fixtures/eventually.js'
import { settlesWithin } from '../../fixtures/settles-within.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { freePort } from '../../servers/free-port.js'
import type { RedisServer } from '../../servers/redis-server.js'
import { quickFailover, type SentinelGroup, startSentinel } from '../../servers/sentinel.js'

const addressOf = ({ host, port }: { host: string; port: number }): string => `${host}:${port}`

const failureOf = (promise: Promise<unknown>) =>
  promise.then(
    (value) => expect.unreachable(`resolved with ${String(value)}`),
    (error: unknown) => wrapRedisError(error, 'decide'),
  )

async function roleOf(connection: OpenedRedis): Promise<unknown> {
  const role = await connection.call('', ['ROLE'])
  return Array.isArray(role) ? role[0] : role
}

/** `close` waits at most 250 ms for the sockets to end. */
const closeMs = 1_000

/** Increments the key until it is stopped; resolves with the numbers of commands sent and answered. */
function counting(connection: OpenedRedis, key: string) {
  const result = { sent: 0, answered: 0 }
  let isOver = false
  const ended = (async () => {
    while (!isOver) {
      result.sent++
      await connection.call(key, ['INCR', key]).then(
        () => result.answered++,
        () => new Promise((resolve) => setTimeout(resolve, 5)),
      )
    }
    return result
  })()
  return {
    result,
    stop() {
      isOver = true
      return ended
    },
  }
}

describe('a cluster', () => {
  let cluster: Cluster
  let connection: OpenedRedis
  beforeAll(async () => {
    cluster = await startCluster({ nodeTimeoutMs: 1_000 })
    connection = openRedis({ clusterNodes: cluster.nodes.slice(0, 2).map(addressOf) })
  })
  afterAll(async () => {
    await connection.close()
    await cluster.stop()
  })

  it('is discovered from some of its nodes, and every key reaches its node', async () => {
    const keys = Array.from({ length: 100 }, (_, index) => `key:${index}`)
    const early = keys.map((key) => connection.call(key, ['SET', key, key]))
    expect(new Set(await Promise.all(early))).toEqual(new Set(['OK']))
    expect(await Promise.all(keys.map((key) => connection.call(key, ['GET', key])))).toEqual(keys)
    expect(connection.isCluster).toBe(true)
    await connection.ready(600_000)
  })

  it('can move keys at the same time', async () => {
    const slot = Number(await cluster.nodes[0]?.call('CLUSTER', 'KEYSLOT', '{moving}'))
    const from = await cluster.primaryOf(slot)
    const to = cluster.nodes.slice(0, 3).find((node) => node !== from) as (typeof cluster.nodes)[number]
    const load = counting(connection, '{moving}')
    await cluster.moveSlot(slot, to)
    const { sent, answered } = await load.stop()
    expect(Number(await to.call('GET', '{moving}'))).toBe(answered)
    expect(answered).toBe(sent)
  })

  it('never runs a command twice, whenever connections are lost', async () => {
    const slot = Number(await cluster.nodes[0]?.call('CLUSTER', 'KEYSLOT', '{once}'))
    const primary = await cluster.primaryOf(slot)
    const keys: string[] = []
    let lost = 0
    // Which calls are in flight when the connection is cut is random: repeat until some were.
    for (let round = 0; round < 30 || lost === 0; round++) {
      const calls = Array.from({ length: 50 }, (_, n) => {
        const key = `{once}:${round}:${n}`
        keys.push(key)
        return connection.call(key, ['INCR', key])
      })
      const kill = primary.call('CLIENT', 'KILL', 'TYPE', 'normal')
      lost += (await Promise.allSettled(calls)).filter(({ status }) => status === 'rejected').length
      await kill
      await eventually(
        'the connection works',
        async () => (await connection.call('{once}', ['EXISTS', '{once}'])) === 0,
      )
    }
    const counts = await connection.call('{once}', ['MGET', ...keys])
    expect((counts as unknown[]).filter((count) => count !== '1' && count !== null)).toEqual([])
  })

  it('is followed to the replica that takes over, and no command runs twice', async () => {
    const slot = Number(await cluster.nodes[0]?.call('CLUSTER', 'KEYSLOT', 'count'))
    const load = counting(connection, 'count')
    await eventually('commands are answered', () => load.result.answered > 0)
    const { killed, promoted } = await cluster.failover(slot)
    const before = load.result.answered
    await eventually('the replica answers', () => load.result.answered > before)
    const { sent } = await load.stop()
    const done = Number(await promoted.call('GET', 'count'))
    expect(done).toBeGreaterThan(0)
    expect(done).toBeLessThanOrEqual(sent)
    await killed.restart()
  })

  it('works again after all nodes were down', async () => {
    await Promise.all(cluster.nodes.map((node) => node.kill()))
    const error = await eventually('calls fail', () => failureOf(connection.call('a', ['GET', 'a'])))
    expect(error.code).toBe('FLUXGATE_STORE_FAILED')
    await Promise.all(cluster.nodes.map((node) => node.restart()))
    await eventually('the cluster is up', async () =>
      (await Promise.all(cluster.nodes.map((node) => node.call('CLUSTER', 'INFO')))).every((info) =>
        String(info).includes('cluster_state:ok'),
      ),
    )
    const works = async () => (await connection.call('zz', ['EXISTS', 'zz'])) === 0
    await eventually('the connection works', works)
  })

  it('is not treated as a single server', async () => {
    const single = openRedis({ uri: cluster.nodes[0]?.uri ?? '' })
    const errors = await Promise.all(['a', 'b', 'c', 'd'].map((key) => single.call(key, ['GET', key]).catch((e) => e)))
    const moved = wrapRedisError(
      errors.find((error) => error instanceof Error),
      'decide',
    )
    expect(moved.code).toBe('FLUXGATE_STORE_MISCONFIGURED')
    expect(moved.message).toContain('use clusterNodes')
    await single.close()
  })

  it('does not delay close when it hangs', async () => {
    for (const node of cluster.nodes) node.pause()
    const other = openRedis({ clusterNodes: cluster.nodes.map(addressOf) })
    await other.ready(100)
    expect(await settlesWithin(closeMs, other.close())).toBe(true)
    expect(await settlesWithin(closeMs, connection.close())).toBe(true)
    for (const node of cluster.nodes) node.resume()
  })

  it('that is unreachable fails calls, and delays neither ready nor close', async () => {
    const nowhere = openRedis({ clusterNodes: [`127.0.0.1:${await freePort()}`] })
    expect((await failureOf(nowhere.call('a', ['GET', 'a']))).message).toContain('the cluster of 127.0.0.1:')
    await nowhere.ready(100)
    expect(await settlesWithin(closeMs, nowhere.close())).toBe(true)
  })
})

describe('sentinels', () => {
  let group: SentinelGroup
  let connection: OpenedRedis
  const password = 's3cret'
  beforeAll(async () => {
    group = await startSentinel({ ...quickFailover, password })
    connection = openRedis({ sentinels: group.sentinels.map(addressOf), sentinelName: group.name, password })
  })
  afterAll(async () => {
    await connection.close()
    await group.stop()
  })

  const answeredBy = (primary: RedisServer) => async (): Promise<boolean> =>
    String(await connection.call('', ['INFO', 'server'])).includes(`tcp_port:${primary.port}\r`)

  it('lead to the primary', async () => {
    expect(await roleOf(connection)).toBe('master')
  })

  it('lead to the next primary, and no command runs twice', async () => {
    const load = counting(connection, 'count')
    await eventually('commands are answered', () => load.result.answered > 0)
    const old = await group.killPrimary()
    const primary = await group.waitForNewPrimary(old)
    await eventually('the new primary answers', answeredBy(primary))
    const { sent } = await load.stop()
    expect(Number(await primary.call('GET', 'count'))).toBeLessThanOrEqual(sent)
    await old.restart()
  })

  it('lead to the next primary when the old one hangs', async () => {
    const old = await group.primary()
    const load = counting(connection, 'count')
    old.pause()
    const primary = await group.waitForNewPrimary(old)
    await eventually('the new primary answers', answeredBy(primary))
    await load.stop()
    old.resume()
  })

  it('that do not know the primary name are reported', async () => {
    const other = openRedis({ sentinels: group.sentinels.map(addressOf), sentinelName: 'nobody', password })
    const error = await failureOf(other.ready(20_000))
    expect(error.code).toBe('FLUXGATE_STORE_MISCONFIGURED')
    expect(error.message).toMatch(/ of nobody: ERR No such master with that name\. Set sentinelName to the name/)
    expect(await settlesWithin(closeMs, other.close())).toBe(true)
  })

  it('work if one of them is unavailable', async () => {
    const sentinels = [`127.0.0.1:${await freePort()}`, ...group.sentinels.map(addressOf)]
    const other = openRedis({ sentinels, sentinelName: group.name, password })
    await other.ready(20_000)
    expect(await roleOf(other)).toBe('master')
    await other.close()
  })

  it('report a wrong password of the server', async () => {
    const other = openRedis({ sentinels: group.sentinels.map(addressOf), sentinelName: group.name, password: 'wrong' })
    await expect(other.ready(20_000)).rejects.toMatchObject({ code: 'FLUXGATE_STORE_MISCONFIGURED' })
    await other.close()
  })

  it('that are unreachable fail calls, and delay neither ready nor close', async () => {
    const nowhere = openRedis({ sentinels: [`127.0.0.1:${await freePort()}`] })
    expect((await failureOf(nowhere.call('a', ['GET', 'a']))).message).toMatch(
      /the sentinels 127.0.0.1:\d+ of mymaster/,
    )
    await nowhere.ready(100)
    expect(await settlesWithin(closeMs, nowhere.close())).toBe(true)
  })
})
