/**
 * Several processes, real ones with the built package, take from the same buckets as fast as they may: 1000 per ten
 * seconds, and windows of a second. With FLUXGATE_TEST_LOAD=full the windows are of ten seconds too, and all of it takes
 * half a minute.
 */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createFluxGate } from '../../../src/gate/create-flux-gate.js'
import type { RedisStoreSettings } from '../../../src/redis/client/open/open-redis.js'
import type { RuleSetInput } from '../../../src/rules/schema/input.js'
import { eventually } from '../../fixtures/eventually.js'
import { startProcesses } from '../../fixtures/load/processes.js'
import { type Cluster, startCluster } from '../../servers/cluster.js'
import { type RedisServer, startRedis } from '../../servers/redis-server.js'

const isFull = process.env.FLUXGATE_TEST_LOAD === 'full'
const processes = 8
const capacity = 1_000
const windowMs = isFull ? 10_000 : 1_000
const durationMs = isFull ? 30_000 : 3_000
const longestMs = 6 * windowMs + 30_000
/** However busy the machine is. */
const resilience = { timeoutMs: 20_000 }
const refillMs = 10_000
const permitMs = refillMs / capacity
/** Low enough that the token bucket is not full again before all processes have started, because overflow is lost. */
const takenFirst = 900

const ruleSet = (id: string, algorithm: string, ms: number): RuleSetInput => ({
  id,
  rules: [{ id: 'rule', limitScope: 'GLOBAL', algorithm, bands: [{ capacity, window: `${ms}ms` }] }],
})
const rules = [ruleSet('fixed', 'FIXED_WINDOW', windowMs), ruleSet('token', 'TOKEN_BUCKET', refillMs)]

interface Tally {
  readonly admitted: number
  /** Admitted permits by `resetAt`; for a fixed window, the permits of that window. */
  readonly byReset: Readonly<Record<string, number>>
  readonly rejectedIn: Readonly<Record<string, true>>
  readonly lastReset: number
}

interface Report {
  readonly wallClock: number
  readonly asked: number
  readonly degraded: number
  readonly outages: readonly string[]
  readonly byRuleSet: { readonly fixed: Tally; readonly token: Tally }
}

async function timeOf(server: RedisServer): Promise<number> {
  const [seconds, microseconds] = (await server.call('TIME')) as [string, string]
  return Number(seconds) * 1_000 + Number(microseconds) / 1_000
}

async function hammer(store: RedisStoreSettings, server: RedisServer, beforeLast?: string) {
  const gate = await createFluxGate({ rules, store, resilience })
  onTestFinished(() => gate.close())
  const settings = { rules, store, resilience, callers: 8, pauseMs: 2 }
  const started = await startProcesses<Report>({
    program: 'hammer.mjs',
    settings: Array(processes).fill(settings),
    ...(beforeLast !== undefined && { beforeLast }),
  })
  const first = await gate.check({}, { ruleSetId: 'token', permits: takenFirst })
  expect(first).toMatchObject({ allowed: true, degraded: false })
  await started.begin()
  const usedUp = new Set<number>()
  await Promise.all([
    new Promise((resolve) => setTimeout(resolve, durationMs)),
    // A busy machine may need more than one window.
    eventually(
      'three windows are used up',
      async () => {
        const { allowed, resetAt } = await gate.check({}, { ruleSetId: 'fixed', peek: true })
        if (!allowed) usedUp.add(resetAt)
        return usedUp.size >= 3
      },
      longestMs,
    ),
  ])
  const stoppedAt = await timeOf(server)
  const reports = await started.end()
  const endedAt = await timeOf(server)
  expect(reports.flatMap(({ outages }) => outages)).toEqual([])
  expect(sum(reports.map(({ degraded }) => degraded))).toBe(0)
  return { reports, usedUp, firstReset: first.resetAt, stoppedAt, endedAt }
}

type Outcome = Awaited<ReturnType<typeof hammer>>
const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

/** In every window of the server's clock, at most the capacity is admitted, and all of it if a request was rejected. */
function expectExactWindows({ reports, usedUp }: Outcome): number[] {
  const tallies = reports.map(({ byRuleSet }) => byRuleSet.fixed)
  const windows = [...new Set(tallies.flatMap(({ byReset }) => Object.keys(byReset)))].sort()
  const admitted = windows.map((window) => sum(tallies.map(({ byReset }) => byReset[window] ?? 0)))
  for (const [i, window] of windows.entries()) {
    expect(Number(window) % windowMs).toBe(0)
    expect(admitted[i]).toBeLessThanOrEqual(capacity)
    if (tallies.some(({ rejectedIn }) => rejectedIn[window])) expect(admitted[i]).toBe(capacity)
  }
  for (const window of usedUp) expect(admitted[windows.indexOf(String(window))]).toBe(capacity)
  return admitted
}

function expectExactRefill({ reports, firstReset, stoppedAt, endedAt }: Outcome) {
  const tallies = reports.map(({ byRuleSet }) => byRuleSet.token)
  const admitted = takenFirst + sum(tallies.map((tally) => tally.admitted))
  const lastReset = Math.max(...tallies.map((tally) => tally.lastReset))
  // Each permit moves the time at which the bucket is full by the same step: none was granted twice or lost.
  expect(admitted).toBe(takenFirst + (lastReset - firstReset) / permitMs)
  // It would have been full again after the time of what was taken first, rounded up to a millisecond.
  const latest = firstReset - takenFirst * permitMs
  const begunAt = { earliest: latest - 1, latest }
  const most = Math.floor(capacity + (endedAt - begunAt.earliest) / permitMs)
  const least = Math.floor(capacity + (stoppedAt - begunAt.latest) / permitMs) - processes
  expect(admitted).toBeLessThanOrEqual(most)
  expect(admitted).toBeGreaterThanOrEqual(least)
  return { admitted, most, least }
}

function expectExact(outcome: Outcome): void {
  const windows = expectExactWindows(outcome)
  const token = expectExactRefill(outcome)
  if (isFull) console.log({ asked: sum(outcome.reports.map(({ asked }) => asked)), windows, token })
}

const testTimeoutMs = longestMs + 60_000

describe('eight processes together get exactly one limit', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis()
  })
  afterAll(() => server.stop())

  it('from one server', { timeout: testTimeoutMs }, async () => {
    expectExact(await hammer({ uri: server.uri, prefix: 'plain' }, server))
  })

  it('if the clock of one of them is an hour ahead', { timeout: testTimeoutMs }, async () => {
    const outcome = await hammer({ uri: server.uri, prefix: 'ahead' }, server, 'clock-ahead-preload.mjs')
    const clocks = outcome.reports.map(({ wallClock }) => wallClock)
    expect((clocks[processes - 1] ?? 0) - (clocks[0] ?? 0)).toBeGreaterThan(3_000_000)
    expectExact(outcome)
  })
})

describe('eight processes together get exactly one limit', () => {
  let cluster: Cluster
  beforeAll(async () => {
    // No node may be declared dead, however busy the machine is.
    cluster = await startCluster({ nodeTimeoutMs: 20_000 })
  })
  afterAll(() => cluster.stop())

  it('from a cluster', { timeout: testTimeoutMs }, async () => {
    const clusterNodes = cluster.nodes.map(({ host, port }) => `${host}:${port}`)
    expectExact(await hammer({ clusterNodes }, cluster.nodes[0] as RedisServer))
  })
})
