/** Exit of a process that uses Redis, with the built package in a separate process. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { expectClosed, runClosing } from '../../fixtures/load/closing.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { freePort } from '../../servers/free-port.js'
import { startRedis } from '../../servers/redis-server.js'
import { startSentinel } from '../../servers/sentinel.js'

describe('a process that closes under load exits, and every decision completes', () => {
  it('on one server', async () => {
    const { uri } = await stopAfterTest(startRedis())
    // So long that only the exit itself could look like a failure, and that a leftover timer would be noticed.
    const report = await runClosing({ uri }, { timeoutMs: 600_000 })
    expectClosed(report)
    expect(report.degradedEvents).toBe(0)
  })

  it('when Redis hangs', async () => {
    const { uri, pid } = await stopAfterTest(startRedis())
    expectClosed(await runClosing({ uri, connections: 2 }, { hangs: [pid] }))
  })

  it('when Redis is down', async () => {
    const stderr = /FLUXGATE_STORE_UNREACHABLE.*Cannot reach the bucket store/
    expectClosed(await runClosing({ uri: `redis://127.0.0.1:${await freePort()}` }, { stderr }))
  })

  it('behind sentinels, even when everything hangs', async () => {
    const group = await stopAfterTest(startSentinel())
    const store = { sentinels: group.sentinels.map(({ host, port }) => `${host}:${port}`), sentinelName: group.name }
    expectClosed(await runClosing(store))
    const hangs = [...group.sentinels, ...group.servers].map(({ pid }) => pid)
    expectClosed(await runClosing(store, { hangs }))
  })
})

describe('a process with an invalid limit exits by itself: nothing was opened for it, or it was closed again', () => {
  it.each([
    ['createLimiter', 'index.js', 'createLimiter(options)', { capacity: -1 }],
    ['a middleware', 'middleware/express.js', 'rateLimit(options)', { capacity: 1, trustedProxies: ['x'] }],
    ['a limit of routes', 'middleware/nest.js', 'new RateLimitGuard(options)', { capacity: -1 }],
    ['a lock on several servers', 'lock.js', "quorumLock([options.store, 'nowhere'])", {}],
  ])('%s', async (_, entry, call, misspelled) => {
    const from = new URL(`../../../dist/${entry}`, import.meta.url)
    const options = { window: '1s', store: `redis://127.0.0.1:${await freePort()}`, ...misspelled }
    const text = `import { ${/\w+(?=\()/.exec(call)?.[0]} } from '${from}'
      const options = ${JSON.stringify(options)}
      try { ${call} } catch (error) { console.log(error.code) }`
    const ended = promisify(execFile)(process.execPath, ['--input-type=module', '-e', text], { timeout: 60_000 })
    expect((await ended).stdout).toMatch(/^FLUXGATE_(RULES|CONFIG)_INVALID\n$/)
  })
})
