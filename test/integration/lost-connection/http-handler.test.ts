/** The HttpHandler when its connections to the server are closed. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HttpHandler } from '../../../src/handlers/index.js'
import { eventually } from '../../fixtures/eventually.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { freePort } from '../../servers/free-port.js'
import { startProxy } from '../../servers/tcp-proxy.js'
import { startCallers } from './cut-connections.js'

/** A server process, and a handler that reaches it through a proxy. */
async function opened(options: { readonly openMs?: number } = {}) {
  const port = await freePort()
  const program = ['test/fixtures/limit-server.mjs', String(port)]
  const child = spawn(process.execPath, program, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(createInterface(child.stdout), 'line')
  const proxy = await stopAfterTest(startProxy(port))
  const handler = new HttpHandler({ url: `http://127.0.0.1:${proxy.port}`, ...options })
  onTestFinished(() => handler.close())
  // A server that has just started may be slow because code is being compiled.
  await eventually('the server is warm', async () => !(await handler.check({})).degraded)
  return { proxy, handler }
}

const longest = { timeout: 120_000 }

describe('an HttpHandler', () => {
  it('loses at most one decision of each caller when all connections are cut', longest, async () => {
    const { proxy, handler } = await opened()
    const callers = startCallers(() => handler.check({}))
    await callers.madeEach(10)
    expect(callers.degraded()).toBe(0)
    for (let round = 0; round < 3; round++) {
      proxy.cut()
      await callers.madeEach(20)
    }
    await callers.stop()
    expect(Math.max(...callers.lost())).toBeLessThanOrEqual(3)
    expect(handler.breaker).toBe('CLOSED')
  })

  it('loses nothing when the server closes idle connections', async () => {
    const { proxy, handler } = await opened()
    for (let round = 0; round < 20; round++) {
      proxy.cut()
      await eventually('the connection is closed', () => proxy.connections() === 0)
      // The handler notices in the next turn.
      await sleep(5)
      expect(await handler.check({})).toMatchObject({ degraded: false })
    }
  })

  it('uses the server again as soon as it accepts connections', async () => {
    // With this delay, a single retry would exceed the test timeout.
    const { proxy, handler } = await opened({ openMs: 60_000 })
    await proxy.refuse()
    proxy.cut()
    for (let i = 0; i < 20; i++) expect(await handler.check({})).toMatchObject({ allowed: true, degraded: true })
    await proxy.accept()
    await eventually('the server decides', async () => !(await handler.check({})).degraded)
    expect(handler.breaker).toBe('CLOSED')
  })
})
