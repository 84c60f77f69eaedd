/** Stalls of a process that uses a FluxGate server, and processes stopped with SIGSTOP. */
import { fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Decision } from '../../../src/core/decision.js'
import { HttpHandler } from '../../../src/handlers/index.js'
import { eventually } from '../../fixtures/eventually.js'
import { stall } from '../../fixtures/stall.js'
import { freePort } from '../../servers/free-port.js'
import { ownRedis } from '../../servers/own-redis.js'
import { raisePriority } from '../../servers/raise-priority.js'

const redis = await ownRedis()

/** URL of the FluxGate server. */
const capacity = 1_000

async function startServer(): Promise<string> {
  const program = ['test/fixtures/limit-server.mjs', String(await freePort())]
  const child = spawn(process.execPath, program, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  raisePriority(child.pid as number)
  const [url] = (await once(createInterface(child.stdout), 'line')) as [string]
  return url
}

const countOf = (decisions: readonly Decision[]) => ({
  allowed: decisions.filter(({ allowed }) => allowed).length,
  degraded: decisions.filter(({ degraded }) => degraded).length,
})

describe('a stall with an HttpHandler', () => {
  async function openHandler(): Promise<HttpHandler> {
    const handler = new HttpHandler({ url: await startServer() })
    onTestFinished(() => handler.close())
    // A server that has just started may be slow because code is being compiled. A peek charges nothing.
    await eventually('the server is warm', async () => !(await handler.check({}, { peek: true })).degraded)
    return handler
  }

  it.each([
    [5, 120],
    [20, 300],
    [20, 1_000],
    [200, 120],
  ])('with %i calls in flight for %i ms degrades no decision', async (calls, ms) => {
    const handler = await openHandler()
    const asked: Promise<Decision>[] = []
    // Decisions of one turn share one request, so these are spread over several turns.
    for (let i = 0; i < calls; i++) {
      asked.push(handler.check({}))
      if (i % 10 === 9 || i === calls - 1) await turn()
    }
    stall(ms)
    expect(countOf(await Promise.all(asked))).toEqual({ allowed: calls, degraded: 0 })
    expect(handler.breaker).toBe('CLOSED')
    const following: Decision[] = []
    // The server may need longer for a larger batch than the timeout of a call.
    while (following.length < capacity)
      following.push(...(await Promise.all(Array.from({ length: 50 }, () => handler.check({})))))
    expect(countOf(following)).toEqual({ allowed: capacity - calls, degraded: 0 })
  })

  it('between the call and its write degrades no decision', async () => {
    const handler = await openHandler()
    const asked = Array.from({ length: 20 }, () => handler.check({}))
    stall(300)
    expect(countOf(await Promise.all(asked))).toEqual({ allowed: 20, degraded: 0 })
    expect(handler.breaker).toBe('CLOSED')
  })
})

describe('a process that is stopped and resumed', () => {
  it.each(['redis', 'http'] as const)('makes no degraded decision: %s', async (kind) => {
    const where = kind === 'redis' ? redis.uri : await startServer()
    const settings = JSON.stringify({ kind, where, callers: 20 })
    const child = fork('test/integration/event-loop-stall/worker.mjs', [settings], { execArgv: [] })
    onTestFinished(() => void child.kill('SIGKILL'))
    await once(child, 'message')
    for (const ms of [120, 300, 1_000, 150, 150]) {
      child.kill('SIGSTOP')
      await sleep(ms)
      child.kill('SIGCONT')
      await sleep(100)
    }
    const reported = once(child, 'message')
    child.send('stop')
    const [report] = await reported
    expect(report).toMatchObject({ degraded: 0, breaker: 'CLOSED' })
    expect(report.made).toBeGreaterThan(0)
  })
})
