/** Several processes lease from one bucket, on the server's clock: the limit is never exceeded and no permit is lost. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { afterAll, expect, it, onTestFinished } from 'vitest'
import type { BucketGroup } from '../../../src/core/bucket-store.js'
import { connectionOf } from '../../../src/redis/client/connection-of.js'
import { RedisBuckets } from '../../../src/stores/redis/redis-buckets.js'
import { second } from '../../../src/testing/fixtures.js'
import { eventually } from '../../fixtures/eventually.js'
import { freshPrefix, sharedRedis } from '../../servers/shared-redis.js'
import { type Admission, bandOf, demandOf, excess, groupOf } from './test-leases.js'

const { port, uri } = sharedRedis()
const client = new Redis(uri)
afterAll(() => client.quit())

const program = fileURLToPath(new URL('hammer.mjs', import.meta.url))

interface Report {
  readonly admitted: number
  readonly fromMemory: number
  /** The most permits that it held at once. */
  readonly most: number
  readonly held: number
  readonly admissions: readonly (readonly [at: number, permits: number])[]
}

/** A window of one year: nothing expires or is refilled while the test runs, so every permit can be accounted for. */
const countable = groupOf([
  bandOf({ algorithm: 'FIXED_WINDOW', capacity: 10_000_000, windowTicks: 366 * 24 * 3_600 * second }),
])

/**
 * Processes that are ready to start, and the bucket they share. Keys are not leased while their bucket is nearly empty, so with a
 * low limit a process may spend no permits from memory.
 */
async function start(count: number, group: BucketGroup, fromMemoryAtLeast = 100) {
  const prefix = freshPrefix()
  const isTimed = group !== countable
  const settings = { port, prefix, group, leaseShare: 0.1, callers: 20, isTimed, fromMemoryAtLeast }
  const children = Array.from({ length: count }, () => fork(program, [JSON.stringify(settings)]))
  onTestFinished(() => {
    for (const child of children) child.kill('SIGKILL')
  })
  await Promise.all(children.map((child) => once(child, 'message')))
  const store = new RedisBuckets(connectionOf(client), { prefix })
  return {
    children,
    remaining: async () => (await store.charge([demandOf(group, 0)], true)).bands[0]?.remaining,
  }
}

async function reported<T>(child: ChildProcess, order: string): Promise<T> {
  const answer = once(child, 'message')
  child.send(order)
  return (await answer)[0] as T
}

/** Runs the processes for a while, then stops them. Resolves once each has spent enough permits from memory. */
async function hammer(children: readonly ChildProcess[], ms: number): Promise<Report[]> {
  for (const child of children) child.send('go')
  await sleep(ms)
  const ends = children.map((child) => once(child, 'exit'))
  const reports = await Promise.all(children.map((child) => reported<Report>(child, 'stop')))
  expect((await Promise.all(ends)).map(([status]) => status)).toEqual(children.map(() => 0))
  return reports
}

const serverSeconds = async (): Promise<number> => Number((await client.time())[0])

const admissionsOf = (reports: readonly Report[]): Admission[] =>
  reports.flatMap(({ admissions }) => admissions.map(([at, permits]) => ({ at, permits })))

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

it('four processes return every permit they did not spend when they close', async () => {
  const { children, remaining } = await start(4, countable)
  const reports = await hammer(children, 500)
  expect(await remaining()).toBe(10_000_000 - sum(reports.map(({ admitted }) => admitted)))
  for (const { fromMemory, most, held } of reports) {
    expect(fromMemory).toBeGreaterThanOrEqual(100)
    // A tenth of the capacity.
    expect(most).toBeLessThanOrEqual(1_000_000)
    expect(held).toBe(0)
  }
})

it('a process returns the permits it holds of a token bucket when it closes', async () => {
  const slow = groupOf([bandOf({ capacity: 100_000, refillTokens: 1, windowTicks: 3_600 * second })])
  const { children, remaining } = await start(1, slow)
  const { admitted } = await reported<Report>(children[0] as ChildProcess, 'holdAndStop')
  expect(await remaining()).toBe(100_000 - admitted)
})

it('four processes share a token bucket, and no interval admits more than the limit', async () => {
  const band = bandOf({ capacity: 400, refillTokens: 1_000, windowTicks: second })
  const { children, remaining } = await start(4, groupOf([band]), 0)
  const admissions = admissionsOf(await hammer(children, 1_500))
  expect(admissions.length).toBeGreaterThanOrEqual(4)
  expect(excess(band, admissions)).toBeUndefined()
  await eventually('the bucket is full', async () => (await remaining()) === 400)
})

it('four processes share a fixed window, and no window admits more than the limit', async () => {
  const band = bandOf({ algorithm: 'FIXED_WINDOW', capacity: 2_000, windowTicks: second / 2 })
  const { children } = await start(4, groupOf([band]), 0)
  const admissions = admissionsOf(await hammer(children, 2_000))
  expect(admissions.length).toBeGreaterThanOrEqual(4)
  expect(excess(band, admissions)).toBeUndefined()
})

it('a killed process loses the permits it held and no more', async () => {
  const { children, remaining } = await start(4, countable)
  const [victim, ...others] = children as [ChildProcess, ...ChildProcess[]]
  const { admitted, held } = await reported<Report>(victim, 'hold')
  expect(held).toBeGreaterThanOrEqual(10)
  victim.kill('SIGKILL')
  const reports = await hammer(others, 500)
  expect(await remaining()).toBe(10_000_000 - admitted - held - sum(reports.map((report) => report.admitted)))
})

it('permits held by a killed process do not come back when the lease expires, only by ordinary refill', async () => {
  const slow = groupOf([bandOf({ capacity: 100_000, refillTokens: 1, windowTicks: 3_600 * second })])
  const { children, remaining } = await start(1, slow)
  const { admitted, held } = await reported<Report>(children[0] as ChildProcess, 'hold')
  expect(held).toBeGreaterThanOrEqual(10)
  children[0]?.kill('SIGKILL')
  const killedAt = await serverSeconds()
  // A lease lasts two seconds at most.
  await eventually('the lease has expired', async () => (await serverSeconds()) > killedAt + 2)
  expect(await remaining()).toBe(100_000 - admitted - held)
})

it('permits held by a killed process are refilled after the lease has expired', async () => {
  const rule = groupOf([bandOf({ capacity: 1_000, windowTicks: second / 10 })])
  const { children, remaining } = await start(1, rule)
  const { held } = await reported<Report>(children[0] as ChildProcess, 'hold')
  children[0]?.kill('SIGKILL')
  await eventually(
    'the bucket is full apart from the reserved permits',
    async () => ((await remaining()) ?? 0) >= 1_000 - held,
  )
  await eventually('the bucket is full', async () => (await remaining()) === 1_000)
})
