/**
 * Processes that compete for a few locks on one server, while they are stopped for longer than their leases, oversleep
 * and are killed. The server is stopped at times too.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { seededRandom } from '../../../src/core/seeded-random.js'
import { stopAfterTest } from '../../fixtures/stop-after-test.js'
import { startRedis } from '../../servers/redis-server.js'
import { freshPrefix } from '../../servers/shared-redis.js'

export interface ExclusionOptions {
  /** Number of critical sections to observe. */
  readonly visits: number
  readonly seed: number
  /** Removes the exclusion check from the script that grants locks. The run ends as soon as a violation is found. */
  readonly withoutExclusion?: boolean
}

/** A critical section whose process believed that it held the lock throughout. Times are in nanoseconds. */
interface Visit {
  readonly name: string
  readonly fence: number
  readonly from: string
  readonly to: string
}

export interface Findings {
  readonly visits: number
  readonly faults: Readonly<Record<'stopped' | 'killed' | 'serverStopped', number>>
  /** Two processes were in a critical section at the same time. */
  readonly overlaps: number
  /** A critical section followed one with a greater fence. */
  readonly fencesBackwards: number
  /** Entries of the ledger that checks fences, and of the data that is guarded by the lock itself. */
  readonly ledger: Written
  readonly guarded: Written
}

interface Written {
  readonly lines: number
  /** Entries written with a smaller fence than an earlier entry. */
  readonly stale: number
  /** Entries that overwrote a concurrent change. */
  readonly lost: number
}

const names = ['a', 'b', 'c', 'd']
const ttlMs = 250
const processes = 6

export async function exclusionRun({ visits, seed, withoutExclusion = false }: ExclusionOptions): Promise<Findings> {
  const server = await stopAfterTest(startRedis())
  const prefix = freshPrefix()
  const seen: Visit[] = []
  const workers = new Set<ChildProcess>()
  const program = fileURLToPath(new URL('worker.mjs', import.meta.url))
  const settings = JSON.stringify({ port: server.port, prefix, names, ttlMs, withoutExclusion })
  let isOver = false
  let failure: string | undefined

  function start(): void {
    const worker = fork(program, [settings])
    workers.add(worker)
    worker.on('message', (found) => seen.push(...(found as Visit[])))
    worker.on('exit', (status, signal) => {
      workers.delete(worker)
      if (!isOver && signal !== 'SIGKILL') failure = `a process has ended with ${status ?? signal}`
    })
  }
  onTestFinished(() => {
    isOver = true
    for (const worker of workers) worker.kill('SIGKILL')
  })
  for (let i = 0; i < processes; i++) start()

  const random = seededRandom(seed)
  const faults = { stopped: 0, killed: 0, serverStopped: 0 }
  const isEnough = (): boolean => (withoutExclusion ? overlaps(seen) > 0 : seen.length >= visits && faults.stopped > 0)
  while (!isEnough()) {
    await pause(100 + random() * 400)
    if (failure !== undefined) throw new Error(failure)
    const worker = [...workers][Math.floor(random() * workers.size)]
    const fault = random()
    if (fault < 0.1) {
      faults.serverStopped++
      server.pause()
      await pause(random() * 2 * ttlMs)
      server.resume()
    } else if (fault < 0.2) {
      faults.killed++
      worker?.kill('SIGKILL')
      start()
    } else if (fault < 0.7) {
      faults.stopped++
      worker?.kill('SIGSTOP')
      setTimeout(() => worker?.kill('SIGCONT'), random() * 3 * ttlMs)
    }
  }
  isOver = true
  for (const worker of workers) worker.kill('SIGKILL')
  const linesOf = async (what: string): Promise<string[][]> =>
    Promise.all(
      names.map(async (name) => (await server.call('LRANGE', `${prefix}:${what}:{${name}}`, 0, -1)) as string[]),
    )
  return {
    visits: seen.length,
    faults,
    overlaps: overlaps(seen),
    fencesBackwards: neighbours(seen).filter(([one, next]) => next.fence <= one.fence).length,
    ledger: written(await linesOf('ledger')),
    guarded: written(await linesOf('guarded')),
  }
}

const overlaps = (visits: readonly Visit[]): number =>
  neighbours(visits).filter(([one, next]) => BigInt(next.from) < BigInt(one.to)).length

const neighbours = (visits: readonly Visit[]): [Visit, Visit][] =>
  names.flatMap((name) => pairs(visitsInOrder(visits, name)))

const visitsInOrder = (visits: readonly Visit[], name: string): Visit[] =>
  visits.filter((visit) => visit.name === name).sort((a, b) => Number(BigInt(a.from) - BigInt(b.from)))

const pairs = <T>(list: readonly T[]): [T, T][] => list.slice(1).map((next, i) => [list[i] as T, next])

/** Each line contains a fence and the line number that its writer expected. */
function written(lists: readonly (readonly string[])[]): Written {
  const lines = lists.map((list) => list.map((line) => line.split(' ').map(Number) as [number, number]))
  const all = lines.flat()
  return {
    lines: all.length,
    stale: lines.flatMap((list) => pairs(list)).filter(([[before], [after]]) => after <= before).length,
    lost: lines.flatMap((list) => list.filter(([, believed], i) => believed !== i + 1)).length,
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
