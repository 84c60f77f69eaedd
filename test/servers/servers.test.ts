/** Tests of the server harness itself. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { eventually } from '../fixtures/eventually.js'
import { stopAfterTest } from '../fixtures/stop-after-test.js'
import { type Cluster, startCluster } from './cluster.js'
import { type RedisOptions, type RedisServer, startRedis } from './redis-server.js'
import { callOnce, openConnection } from './resp.js'
import { selfSigned } from './self-signed.js'
import { quickFailover, startSentinel } from './sentinel.js'
import { freshPrefix, sharedRedis } from './shared-redis.js'
import { startProxy } from './tcp-proxy.js'
import { valkeyBinary } from './valkey.js'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const redis = (options?: RedisOptions): Promise<RedisServer> => stopAfterTest(startRedis(options))

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

async function elapsedMs(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

describe('a server', () => {
  it('answers as soon as it is started, and leaves neither a process nor a file behind', async () => {
    const server = await redis()
    expect(server.uri).toBe(`redis://127.0.0.1:${server.port}`)
    expect(await server.call('PING')).toBe('PONG')
    expect(isAlive(server.pid)).toBe(true)
    await server.stop()
    expect(isAlive(server.pid)).toBe(false)
    expect(existsSync(server.directory)).toBe(false)
    await expect(server.call('PING')).rejects.toThrow('ECONNREFUSED')
  })

  it('that is killed restarts on its port: with its data if persistence is on, otherwise empty', async () => {
    const forgetful = await redis()
    const durable = await redis({ config: ['appendonly yes', 'appendfsync always'] })
    for (const server of [forgetful, durable]) {
      await server.call('SET', 'key', 'kept')
      const { pid } = server
      await server.kill()
      expect(isAlive(pid)).toBe(false)
      expect(server.isRunning()).toBe(false)
      await server.restart()
      expect(server.pid).not.toBe(pid)
    }
    expect(await forgetful.call('GET', 'key')).toBe(null)
    expect(await durable.call('GET', 'key')).toBe('kept')
  })

  it('restarts with the latest writes', async () => {
    const server = await redis({ config: ['appendonly yes', 'appendfsync no'] })
    await server.call('SET', 'key', 'kept')
    const { pid } = server
    await server.restart()
    expect(isAlive(pid)).toBe(false)
    expect(await server.call('GET', 'key')).toBe('kept')
  })

  it('that is paused does not answer and loses nothing', async () => {
    const server = await redis()
    server.pause()
    let answered = false
    const answer = server.call('PING').finally(() => {
      answered = true
    })
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(answered).toBe(false)
    server.resume()
    expect(await answer).toBe('PONG')
    server.pause()
    await server.stop()
    expect(isAlive(server.pid)).toBe(false)
  })

  it('accepts configuration: a memory limit, a password, TLS', async () => {
    const small = await redis({ config: ['maxmemory 3mb'] })
    expect(await small.call('CONFIG', 'GET', 'maxmemory')).toEqual(['maxmemory', '3145728'])

    const guarded = await redis({ password: 'a b"c' })
    expect(guarded.uri).toBe(`redis://:a%20b%22c@127.0.0.1:${guarded.port}`)
    expect(await guarded.call('PING')).toBe('PONG')
    const { host, port } = guarded
    await expect(callOnce({ host, port }, 'PING')).rejects.toThrow('NOAUTH')

    const encrypted = await redis({ tls: selfSigned() })
    expect(encrypted.uri).toBe(`rediss://127.0.0.1:${encrypted.port}`)
    expect(await encrypted.call('PING')).toBe('PONG')
  })

  it('that cannot start reports why', async () => {
    await expect(startRedis({ config: ['maxmemory lots'] })).rejects.toThrow(/exited:[\s\S]*maxmemory/)
    await expect(startRedis({ binary: 'no-such-server' })).rejects.toThrow(/no-such-server.*not found/)
    const { port } = await redis()
    await expect(startRedis({ port })).rejects.toThrow(/in use/)
  })

  it('can be Valkey: from FLUXGATE_TEST_VALKEY or from the PATH', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'fluxgate-valkey-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    vi.stubEnv('FLUXGATE_TEST_VALKEY', undefined)
    vi.stubEnv('PATH', `${directory}:${process.env.PATH}`)
    onTestFinished(() => void vi.unstubAllEnvs())
    const program = join(directory, 'valkey-server')
    writeFileSync(program, '#!/bin/sh\nexec redis-server "$@" --maxclients 77\n', { mode: 0o755 })
    expect(valkeyBinary()).toBe(program)
    const server = await redis({ binary: program })
    expect(await server.call('CONFIG', 'GET', 'maxclients')).toEqual(['maxclients', '77'])
    vi.stubEnv('FLUXGATE_TEST_VALKEY', '/opt/valkey-server')
    expect(valkeyBinary()).toBe('/opt/valkey-server')
  })

  it('exits with the process that started it, even if that is killed', async () => {
    const script = `
      import { runnerImport } from 'vite'
      const { module } = await runnerImport('./test/servers/redis-server.ts')
      const [running, paused] = [await module.startRedis(), await module.startRedis()]
      paused.pause()
      console.log(JSON.stringify([running, paused].map(({ pid, directory }) => ({ pid, directory }))))
      setInterval(() => {}, 1000)
    `
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { cwd: root })
    const [line] = await once(child.stdout, 'data')
    const servers = JSON.parse(String(line)) as { pid: number; directory: string }[]
    expect(servers.map(({ pid }) => isAlive(pid))).toEqual([true, true])
    child.kill('SIGKILL')
    await eventually('no process and no file is left', () =>
      servers.every(({ pid, directory }) => !isAlive(pid) && !existsSync(directory)),
    )
  })
})

describe('the server that all tests share', () => {
  it('gives each test its own keys', async () => {
    const { host, port, uri } = sharedRedis()
    expect(uri).toBe(`redis://127.0.0.1:${port}`)
    const [mine, yours] = [freshPrefix(), freshPrefix()]
    await callOnce({ host, port }, 'SET', `${mine}key`, 1, 'PX', 60_000)
    expect(await callOnce({ host, port }, 'EXISTS', `${mine}key`, `${yours}key`)).toBe(1)
  })
})

describe('a group of sentinels', () => {
  it('promotes a replica when the primary dies, and adds the old primary back as a replica', async () => {
    const group = await stopAfterTest(startSentinel({ ...quickFailover, password: 'secret' }))
    const first = await group.primary()
    expect(await group.replicas()).toHaveLength(2)
    await first.call('SET', 'key', 'kept')
    await first.call('WAIT', 2, 1_000)
    const killed = await group.killPrimary()
    expect(killed).toBe(first)
    const second = await group.waitForNewPrimary(killed)
    expect(second).not.toBe(first)
    expect(await second.call('GET', 'key')).toBe('kept')
    await second.call('SET', 'key', 'changed')

    await first.restart()
    await eventually(
      'the old primary replicates the new one',
      async () => (await first.call('GET', 'key')) === 'changed',
    )
    // On an overloaded machine the second primary may seem dead too, and be replaced.
    expect(await group.primary()).not.toBe(first)
    await group.stop()
    expect([...group.sentinels, ...group.servers].map(({ pid }) => isAlive(pid))).not.toContain(true)
  })
})

describe('a cluster', () => {
  let cluster: Cluster
  beforeAll(async () => {
    cluster = await startCluster({ nodeTimeoutMs: 1_000 })
  })
  afterAll(() => cluster.stop())

  const slotOf = async (key: string) => Number(await cluster.nodes[0]?.call('CLUSTER', 'KEYSLOT', key))

  it('shows the redirects of a moving slot: ASK, TRYAGAIN, then MOVED', async () => {
    const slot = await slotOf('{foo}')
    const [from, to] = [await cluster.primaryOf(slot), await cluster.primaryOf(0)]
    await from.call('MSET', '{foo}1', 1, '{foo}2', 2)

    const move = await cluster.beginMove(slot, to)
    expect(await from.call('GET', '{foo}1')).toBe('1')
    expect(await move.moveKeys(1)).toBe(1)
    const [there, here] = (await from.call('EXISTS', '{foo}1').catch(() => 0)) ? ['2', '1'] : ['1', '2']
    await expect(from.call('GET', `{foo}${there}`)).rejects.toThrow(`ASK ${slot} 127.0.0.1:${to.port}`)
    expect(await from.call('GET', `{foo}${here}`)).toBe(here)
    await expect(from.call('MGET', '{foo}1', '{foo}2')).rejects.toThrow('TRYAGAIN')
    await expect(to.call('GET', `{foo}${there}`)).rejects.toThrow(`MOVED ${slot} 127.0.0.1:${from.port}`)
    const connection = await openConnection(to.address)
    await connection.call('ASKING')
    expect(await connection.call('GET', `{foo}${there}`)).toBe(there)
    connection.close()

    await move.finish()
    expect(await cluster.primaryOf(slot)).toBe(to)
    await expect(from.call('GET', '{foo}1')).rejects.toThrow(`MOVED ${slot} 127.0.0.1:${to.port}`)
    expect(await to.call('MGET', '{foo}1', '{foo}2')).toEqual(['1', '2'])
    await cluster.moveSlot(slot, from)
    expect(await from.call('MGET', '{foo}1', '{foo}2')).toEqual(['1', '2'])
  })

  it('redirects clients to the owner of a slot, before and after its primary dies', async () => {
    expect(cluster.nodes).toHaveLength(6)
    // "foo" is in slot 12182 and "bar" in 5061.
    const [owner, other] = [await cluster.primaryOf(12_182), await cluster.primaryOf(5_061)]
    await owner.call('SET', 'foo', 1)
    await expect(other.call('GET', 'foo')).rejects.toThrow(`MOVED 12182 127.0.0.1:${owner.port}`)

    const { killed, promoted } = await cluster.failover(5_061)
    expect(killed).toBe(other)
    await expect(owner.call('GET', 'bar')).rejects.toThrow(`MOVED 5061 127.0.0.1:${promoted.port}`)
    await promoted.call('SET', 'bar', 2)
    await killed.restart()
    await eventually('the old primary replicates the new one', async () =>
      String(await killed.call('ROLE')).startsWith('slave'),
    )
    await cluster.stop()
    expect(cluster.nodes.map(({ pid }) => isAlive(pid))).not.toContain(true)
  })
})

describe('a proxy', () => {
  it('adds latency in each direction and keeps the order', async () => {
    const server = await redis()
    const proxy = await stopAfterTest(startProxy(server.port))
    expect(await callOnce(proxy, 'PING')).toBe('PONG')
    proxy.setDelay(100)
    expect(await elapsedMs(() => callOnce(proxy, 'PING'))).toBeGreaterThanOrEqual(200)
    const connection = await openConnection(proxy)
    const first = connection.call('RPUSH', 'list', 'a')
    proxy.setDelay(0)
    expect(await Promise.all([first, connection.call('RPUSH', 'list', 'b')])).toEqual([1, 2])
    expect(await server.call('LRANGE', 'list', 0, -1)).toEqual(['a', 'b'])
    connection.close()
    await eventually('the end of the connection arrives', () => proxy.connections() === 0)
  })

  it('that hangs accepts connections and delivers nothing until it is resumed', async () => {
    const server = await redis()
    const proxy = await stopAfterTest(startProxy(server.port))
    proxy.hang()
    const impatient = await openConnection(proxy, 200)
    await expect(impatient.call('SET', 'late', 1)).rejects.toThrow('no answer')
    expect(await server.call('EXISTS', 'late')).toBe(0)
    proxy.resume()
    await eventually('the late command is executed', async () => (await server.call('EXISTS', 'late')) === 1)
    expect(await callOnce(proxy, 'PING')).toBe('PONG')
  })

  it('cuts open connections, refuses new ones, and accepts again on the same port', async () => {
    const server = await redis()
    const proxy = await stopAfterTest(startProxy(server.port))
    const connection = await openConnection(proxy)
    expect(await connection.call('PING')).toBe('PONG')
    await proxy.refuse()
    expect(await connection.call('PING')).toBe('PONG')
    await expect(callOnce(proxy, 'PING')).rejects.toThrow('ECONNREFUSED')
    proxy.cut()
    await expect(connection.call('PING')).rejects.toThrow()
    await proxy.accept()
    expect(await callOnce(proxy, 'PING')).toBe('PONG')
  })

  it('cuts connections that it is closing', async () => {
    const server = await redis()
    const proxy = await stopAfterTest(startProxy(server.port))
    const connection = await openConnection(proxy)
    expect(await connection.call('PING')).toBe('PONG')
    proxy.halfClose()
    proxy.cut()
    await eventually('the connection is closed', () => proxy.connections() === 0)
    connection.close()
  })
})
