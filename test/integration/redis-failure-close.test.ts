/** The end of a process that uses Redis: with the built package, in a process of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RedisOptions } from '../../src/app/open-redis.js'
import { startCluster } from '../servers/cluster.js'
import { freePort } from '../servers/free-port.js'
import { startRedis } from '../servers/redis-server.js'
import { startSentinel } from '../servers/sentinel.js'
import { stopAfterTest } from '../servers/stop-after-test.js'

const program = join(dirname(dirname(fileURLToPath(import.meta.url))), 'load', 'close.mjs')

interface Report {
  readonly asked: number
  readonly answered: number
  readonly degradedEvents: number
  /** How many by code. */
  readonly errors: Readonly<Record<string, number>>
  readonly closeMs: number
}

/** What the program tells, if it comes to its end by itself and has nothing to complain about. */
async function run(store: RedisOptions, { hangs = [] as readonly number[], timeoutMs = 100 } = {}): Promise<Report> {
  const child = spawn(process.execPath, [program, JSON.stringify({ store, timeoutMs, hangs })], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (text) => {
    stdout += text
  })
  child.stderr.on('data', (text) => {
    stderr += text
  })
  const [status] = await once(child, 'close')
  expect(stderr).toBe('')
  expect(status).toBe(0)
  return JSON.parse(stdout)
}

/** Every decision was answered, or says that it came too late; and nobody had to wait long for the end. */
function expectClosed({ asked, answered, errors, closeMs }: Report): void {
  const { FLUXGATE_CLOSED: closed = 0, ...others } = errors
  expect(others).toEqual({})
  expect(asked).toBe(answered + closed)
  // Each of 50 callers was told once, and five had waited.
  expect(closed).toBe(55)
  expect(closeMs).toBeLessThan(5_000)
}

describe('a process that closes under load ends by itself, and every decision is answered', () => {
  it('on one server', async () => {
    const { uri } = await stopAfterTest(startRedis())
    // So long that nothing but the end itself could look like a failure.
    const report = await run({ uri }, { timeoutMs: 10_000 })
    expectClosed(report)
    expect(report.degradedEvents).toBe(0)
  })

  it('when Redis hangs', async () => {
    const { uri, pid } = await stopAfterTest(startRedis())
    expectClosed(await run({ uri, connections: 2 }, { hangs: [pid] }))
  })

  it('when Redis is gone', async () => {
    expectClosed(await run({ uri: `redis://127.0.0.1:${await freePort()}` }))
  })

  it('behind sentinels, also when everything hangs', async () => {
    const group = await stopAfterTest(startSentinel())
    const store = { sentinels: group.sentinels.map(({ host, port }) => `${host}:${port}`), sentinelName: group.name }
    expectClosed(await run(store))
    const hangs = [...group.sentinels, ...group.servers].map(({ pid }) => pid)
    expectClosed(await run(store, { hangs }))
  })

  it('on a cluster, also when everything hangs', async () => {
    const cluster = await stopAfterTest(startCluster({ nodeTimeoutMs: 20_000 }))
    const store = { clusterNodes: cluster.nodes.map(({ host, port }) => `${host}:${port}`) }
    expectClosed(await run(store))
    expectClosed(await run(store, { hangs: cluster.nodes.map(({ pid }) => pid) }))
  })
})
