/** Connections that FluxGate opens by itself, to a cluster and to servers behind sentinels. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type OpenedRedis, openRedis } from '../../src/app/open-redis.js'
import { wrapRedisError } from '../../src/redis/connection-errors.js'
import { type Cluster, startCluster } from '../servers/cluster.js'
import { eventually } from '../servers/eventually.js'
import { freePort } from '../servers/free-port.js'
import { type SentinelGroup, startSentinel } from '../servers/sentinel.js'

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

async function msOf(action: () => Promise<unknown>): Promise<number> {
  const begin = performance.now()
  await action()
  return performance.now() - begin
}

/** Counts as fast as it can until told to stop; resolves with how many were sent and answered. */
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
  return () => {
    isOver = true
    return ended
  }
}

describe('a cluster', () => {
  let cluster: Cluster
  let connection: OpenedRedis
  beforeAll(async () => {
    cluster = await startCluster()
    connection = openRedis({ clusterNodes: cluster.nodes.slice(0, 2).map(addressOf) })
  })
  afterAll(async () => {
    await connection.close()
    await cluster.stop()
  })

  it('is found from some of its nodes, and every key is where it belongs', async () => {
    const keys = Array.from({ length: 100 }, (_, index) => `key:${index}`)
    const early = keys.map((key) => connection.call(key, ['SET', key, key]))
    expect(new Set(await Promise.all(early))).toEqual(new Set(['OK']))
    expect(await Promise.all(keys.map((key) => connection.call(key, ['GET', key])))).toEqual(keys)
    expect(connection.isCluster).toBe(true)
    await connection.ready(1_000)
  })

  it('may move keys meanwhile', async () => {
    const slot = Number(await cluster.nodes[0]?.call('CLUSTER', 'KEYSLOT', '{moving}'))
    const from = await cluster.primaryOf(slot)
    const to = cluster.nodes.slice(0, 3).find((node) => node !== from) as (typeof cluster.nodes)[number]
    const stop = counting(connection, '{moving}')
    await cluster.moveSlot(slot, to)
    const { sent, answered } = await stop()
    expect(Number(await to.call('GET', '{moving}'))).toBe(answered)
    expect(answered).toBe(sent)
  })

  it('never does a command twice, whenever connections are lost', async () => {
    const slot = Number(await cluster.nodes[0]?.call('CLUSTER', 'KEYSLOT', '{once}'))
    const primary = await cluster.primaryOf(slot)
    const keys: string[] = []
    let lost = 0
    // Which calls a lost connection catches on their way is a matter of chance: on until it has caught some.
    for (let round = 0; round < 30 || lost === 0; round++) {
      const calls = Array.from({ length: 50 }, (_, n) => {
        const key = `{once}:${round}:${n}`
        keys.push(key)
        return connection.call(key, ['INCR', key])
      })
      const kill = primary.call('CLIENT', 'KILL', 'TYPE', 'normal')
      lost += (await Promise.allSettled(calls)).filter(({ status }) => status === 'rejected').length
      await kill
      await eventually('it works', async () => (await connection.call('{once}', ['EXISTS', '{once}'])) === 0)
    }
    const counts = await connection.call('{once}', ['MGET', ...keys])
    expect((counts as unknown[]).filter((count) => count !== '1' && count !== null)).toEqual([])
  })

  it('is followed to the replica that takes over, and nothing is done twice', async () => {
    const slot = Number(await cluster.nodes[0]?.call('CLUSTER', 'KEYSLOT', 'count'))
    const stop = counting(connection, 'count')
    const { killed, promoted } = await cluster.failover(slot)
    const back = await msOf(() => eventually('it works', () => connection.call('count', ['EXISTS', 'count'])))
    const { sent, answered } = await stop()
    expect(back).toBeLessThan(2_000)
    const done = Number(await promoted.call('GET', 'count'))
    expect(done).toBeLessThanOrEqual(sent)
    expect(answered).toBeGreaterThan(0)
    await killed.restart()
  })

  it('is back within a second after all of it was gone', async () => {
    await Promise.all(cluster.nodes.map((node) => node.kill()))
    const error = await eventually('it fails', () => failureOf(connection.call('a', ['GET', 'a'])))
    expect(error.code).toBe('FLUXGATE_STORE_FAILED')
    await Promise.all(cluster.nodes.map((node) => node.restart()))
    await eventually('the cluster is up', async () =>
      (await Promise.all(cluster.nodes.map((node) => node.call('CLUSTER', 'INFO')))).every((info) =>
        String(info).includes('cluster_state:ok'),
      ),
    )
    const works = async () => (await connection.call('zz', ['EXISTS', 'zz'])) === 0
    expect(await msOf(() => eventually('it works', works))).toBeLessThan(2_000)
  })

  it('is not mistaken for a single server', async () => {
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

  it('is closed quickly when it hangs', async () => {
    for (const node of cluster.nodes) node.pause()
    const other = openRedis({ clusterNodes: cluster.nodes.map(addressOf) })
    await other.ready(100)
    expect(await msOf(() => other.close())).toBeLessThan(1_000)
    expect(await msOf(() => connection.close())).toBeLessThan(1_000)
    for (const node of cluster.nodes) node.resume()
  })

  it('that is not there keeps nobody waiting', async () => {
    const nowhere = openRedis({ clusterNodes: [`127.0.0.1:${await freePort()}`] })
    expect((await failureOf(nowhere.call('a', ['GET', 'a']))).message).toContain('the cluster of 127.0.0.1:')
    expect(await msOf(() => nowhere.ready(100))).toBeGreaterThan(90)
    expect(await msOf(() => nowhere.close())).toBeLessThan(1_000)
  })
})

describe('sentinels', () => {
  let group: SentinelGroup
  let connection: OpenedRedis
  const password = 's3cret'
  beforeAll(async () => {
    group = await startSentinel({ password })
    connection = openRedis({ sentinels: group.sentinels.map(addressOf), sentinelName: group.name, password })
  })
  afterAll(async () => {
    await connection.close()
    await group.stop()
  })

  it('lead to the primary', async () => {
    expect(await roleOf(connection)).toBe('master')
  })

  it('lead to the next primary, and nothing is done twice', async () => {
    const stop = counting(connection, 'count')
    const old = await group.killPrimary()
    const primary = await group.waitForNewPrimary(old)
    const back = await msOf(() => eventually('it works', () => connection.call('count', ['INCR', 'other'])))
    const { sent, answered } = await stop()
    expect(back).toBeLessThan(2_000)
    expect(Number(await primary.call('GET', 'count'))).toBeLessThanOrEqual(sent)
    expect(answered).toBeGreaterThan(0)
    await old.restart()
  })

  it('lead to the next primary when the old one hangs', async () => {
    const old = await group.primary()
    const stop = counting(connection, 'count')
    old.pause()
    const primary = await group.waitForNewPrimary(old)
    const port = async () => {
      const info = String(await connection.call('', ['INFO', 'server']))
      return info.includes(`tcp_port:${primary.port}\r`)
    }
    expect(await msOf(() => eventually('the new primary answers', port))).toBeLessThan(3_000)
    await stop()
    old.resume()
  })

  it('that know no such primary say so', async () => {
    const other = openRedis({ sentinels: group.sentinels.map(addressOf), sentinelName: 'nobody', password })
    const error = await failureOf(other.ready(5_000))
    expect(error.code).toBe('FLUXGATE_STORE_MISCONFIGURED')
    expect(error.message).toMatch(/ of nobody: ERR No such master with that name. Give the name/)
    expect(await msOf(() => other.close())).toBeLessThan(1_000)
  })

  it('of whom one is not there are enough', async () => {
    const sentinels = [`127.0.0.1:${await freePort()}`, ...group.sentinels.map(addressOf)]
    const other = openRedis({ sentinels, sentinelName: group.name, password })
    await other.ready(5_000)
    expect(await roleOf(other)).toBe('master')
    await other.close()
  })

  it('say that the password of the server is wrong', async () => {
    const other = openRedis({ sentinels: group.sentinels.map(addressOf), sentinelName: group.name, password: 'wrong' })
    await expect(other.ready(5_000)).rejects.toMatchObject({ code: 'FLUXGATE_STORE_MISCONFIGURED' })
    await other.close()
  })

  it('that are not there keep nobody waiting', async () => {
    const nowhere = openRedis({ sentinels: [`127.0.0.1:${await freePort()}`] })
    expect((await failureOf(nowhere.call('a', ['GET', 'a']))).message).toMatch(
      /the sentinels 127.0.0.1:\d+ of mymaster/,
    )
    expect(await msOf(() => nowhere.ready(100))).toBeGreaterThan(90)
    expect(await msOf(() => nowhere.close())).toBeLessThan(1_000)
  })
})
