/** The end of a process that uses Redis: with the built package, in a process of its own. */
import { describe, expect, it } from 'vitest'
import { expectClosed, runClosing } from '../load/closing.js'
import { freePort } from '../servers/free-port.js'
import { startRedis } from '../servers/redis-server.js'
import { startSentinel } from '../servers/sentinel.js'
import { stopAfterTest } from '../servers/stop-after-test.js'

describe('a process that closes under load ends by itself, and every decision is answered', () => {
  it('on one server', async () => {
    const { uri } = await stopAfterTest(startRedis())
    // So long that nothing but the end itself could look like a failure.
    const report = await runClosing({ uri }, { timeoutMs: 10_000 })
    expectClosed(report)
    expect(report.degradedEvents).toBe(0)
  })

  it('when Redis hangs', async () => {
    const { uri, pid } = await stopAfterTest(startRedis())
    expectClosed(await runClosing({ uri, connections: 2 }, { hangs: [pid] }))
  })

  it('when Redis is gone', async () => {
    expectClosed(await runClosing({ uri: `redis://127.0.0.1:${await freePort()}` }))
  })

  it('behind sentinels, also when everything hangs', async () => {
    const group = await stopAfterTest(startSentinel())
    const store = { sentinels: group.sentinels.map(({ host, port }) => `${host}:${port}`), sentinelName: group.name }
    expectClosed(await runClosing(store))
    const hangs = [...group.sentinels, ...group.servers].map(({ pid }) => pid)
    expectClosed(await runClosing(store, { hangs }))
  })
})
