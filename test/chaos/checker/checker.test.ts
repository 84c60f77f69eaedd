import { describe, expect, it } from 'vitest'
import { type Entry, type History, type Incident, LoopTimes } from '../history.js'
import { check } from './checker.js'

const ms = 1_000
const second = 1_000 * ms
/** The epoch that the monotonic clock counts from here, in milliseconds. */
const epochMs = 1_700_000_000_000

interface Shape extends Partial<Omit<Entry, 'charges'>> {
  readonly limit?: number
  readonly resetAt?: number
}

function entry(rule: string, startAt: number, { limit = 20, resetAt = 0, ...more }: Shape = {}): Entry {
  const process = more.process ?? 'library-1'
  return {
    process,
    life: `${process}#1`,
    decidedBy: `${process}#1`,
    startAt,
    endAt: startAt + ms,
    path: `/${rule}`,
    user: 'user',
    api: 'key',
    permits: 1,
    allowed: true,
    degraded: false,
    delayMs: 0,
    reason: 'ALLOWED',
    charges: [{ rule, limit, resetAt }],
    ...more,
  }
}

function history(entries: readonly Entry[], incidents: readonly Incident[] = [], more: Partial<History> = {}): History {
  const loops = new LoopTimes()
  const ticks = Array.from({ length: 4_000 }, (_, index) => index * LoopTimes.sliceMs * ms)
  for (const process of ['library-1', 'library-2', 'remote', 'server', 'gateway', 'harness']) loops.add(process, ticks)
  const clockOffset = { least: epochMs * ms, most: epochMs * ms }
  return { entries, incidents, loops, unanswered: [], clockOffset, ...more }
}

const kinds = (given: History): string[] => check(given).map(({ kind }) => kind)
const times = (count: number, make: (index: number) => Entry): Entry[] =>
  Array.from({ length: count }, (_, i) => make(i))
const incident = (more: Partial<Incident>): Incident => ({
  fault: 'a fault',
  from: second,
  to: second,
  explains: 'none',
  ...more,
})

describe('admissions of the shared store', () => {
  it('may reach the capacity of a token bucket and not exceed it by one', () => {
    const full = times(20, () => entry('token', 0))
    expect(kinds(history(full))).toEqual([])
    expect(kinds(history([...full, entry('token', 0)]))).toEqual(['over-admission'])
  })

  it('belong to a bucket of their own after a rule edit', () => {
    const before = times(20, () => entry('token', 0))
    const after = times(21, () => entry('token', 0, { limit: 21 }))
    expect(kinds(history([...before, ...after]))).toEqual([])
    expect(kinds(history([...before, ...after, entry('token', 0, { limit: 21 })]))).toEqual(['over-admission'])
  })

  it('may reach the capacity of a sliding window counter, weighted by the rest of the previous window', () => {
    const at = (startAt: number, resetAt: number) => entry('counter', startAt, { resetAt: epochMs + resetAt })
    const before = times(20, () => at(0.5 * second, 1_000))
    // In the middle of the current window, 20 permits of the previous one weigh 10. Request time and clock tolerance are 2 ms.
    const half = (count: number) => times(count, () => at(1.5 * second - 2 * ms, 2_000))
    expect(kinds(history([...before, ...half(10)]))).toEqual([])
    expect(kinds(history([...before, ...half(11)]))).toEqual(['over-admission'])
    expect(kinds(history([...before, at(0.5 * second, 1_000)]))).toEqual(['over-admission'])
    const lost = [incident({ from: 1.2 * second, to: 1.2 * second, losesWrites: true })]
    expect(kinds(history([...before, ...half(11)], lost))).toEqual([])
  })

  it('may reach the capacity of a fixed window once per window', () => {
    const window = (resetAt: number, count: number) =>
      times(count, () => entry('window', 0, { limit: 30, resetAt: epochMs + resetAt }))
    expect(kinds(history([...window(1_000, 30), ...window(2_000, 30)]))).toEqual([])
    expect(kinds(history([...window(1_000, 30), ...window(2_000, 31)]))).toEqual(['over-admission'])
  })

  it('may reach the capacity of a fixed window twice if writes of that window were lost', () => {
    const window = (count: number) => times(count, () => entry('window', 0, { limit: 30, resetAt: epochMs + 1_000 }))
    const lost = (from: number) => [incident({ from, to: from, losesWrites: true })]
    expect(kinds(history(window(60), lost(500 * ms)))).toEqual([])
    expect(kinds(history(window(61), lost(500 * ms)))).toEqual(['over-admission'])
    expect(kinds(history(window(31), lost(1_001 * ms)))).toEqual(['over-admission'])
  })

  it('may reach the capacity of a sliding window within its length', () => {
    const full = times(30, () => entry('log', 0, { limit: 30 }))
    expect(kinds(history([...full, entry('log', second, { limit: 30 })]))).toEqual([])
    expect(kinds(history([...full, entry('log', second - 5 * ms, { limit: 30 })]))).toEqual(['over-admission'])
  })

  it('may spend leases that were charged before a loss for two seconds after it', () => {
    const lost = [incident({ from: 0, to: 0, losesWrites: true })]
    const twice = (at: number) => times(120, () => entry('leased', at, { limit: 60 }))
    expect(kinds(history(twice(1_900 * ms), lost))).toEqual([])
    expect(kinds(history(twice(2_100 * ms), lost))).toEqual(['over-admission'])
  })

  it('are released by a leaky bucket at least one permit apart', () => {
    const released = (resetAt: number, permits = 1) =>
      entry('leaky', 0, { limit: 10, permits, resetAt: epochMs + resetAt })
    // 30 permits per second: 33.3 ms each, and instants are rounded up to a millisecond.
    expect(kinds(history([released(34), released(67), released(134, 2)]))).toEqual([])
    expect(kinds(history([released(34), released(66)]))).toEqual(['release spacing'])
    expect(kinds(history([released(34), released(99, 2)]))).toEqual(['release spacing'])
  })

  it('of two rules at once are counted in both', () => {
    const both = (user: string): Entry => ({
      ...entry('pair-user', 0, { path: '/pair', user }),
      charges: [
        { rule: 'pair-user', limit: 20, resetAt: 0 },
        { rule: 'pair-key', limit: 40, resetAt: epochMs + 1_000 },
      ],
    })
    const shared = ['a', 'b', 'c'].flatMap((user) => times(user === 'c' ? 1 : 20, () => both(user)))
    expect(kinds(history(shared.slice(0, 40)))).toEqual([])
    expect(kinds(history(shared))).toEqual(['over-admission'])
  })
})

describe('degraded decisions', () => {
  const degraded = (startAt: number, more: Shape = {}) => entry('token', startAt, { degraded: true, ...more })

  it('obey the limit separately for each start of a process', () => {
    const outage = [incident({ from: 0, to: second, explains: 'outage' })]
    const full = (decidedBy: string) => times(20, () => degraded(0, { decidedBy }))
    const all = [...full('library-1#1'), ...full('library-1#2'), ...times(20, () => entry('token', 0))]
    expect(kinds(history(all, outage))).toEqual([])
    expect(kinds(history([...all, degraded(0, { decidedBy: 'library-1#2' })], outage))).toEqual([
      'local over-admission',
    ])
  })

  it('are legal until a second after an outage, and not before it', () => {
    const outage = [incident({ from: second, to: 2 * second, explains: 'outage' })]
    expect(kinds(history([degraded(second - ms), degraded(3 * second)], outage))).toEqual([])
    expect(kinds(history([degraded(second - 2 * ms)], outage))).toEqual(['unexplained degraded decision'])
    expect(kinds(history([degraded(3 * second + 10 * ms)], outage))).toEqual(['unexplained degraded decision'])
  })

  it('are legal until 50 ms after a cut', () => {
    const cut = [incident({ explains: 'cut' })]
    expect(kinds(history([degraded(second + 50 * ms)], cut))).toEqual([])
    expect(kinds(history([degraded(second + 60 * ms)], cut))).toEqual(['unexplained degraded decision'])
  })

  it('are not explained by a stall of their own process or a rule edit', () => {
    expect(kinds(history([degraded(second)], [incident({})]))).toEqual(['unexplained degraded decision'])
  })

  it('are explained for the identities of a slot that moves and for no others', () => {
    const move = [incident({ explains: 'outage', users: ['user'] })]
    expect(kinds(history([degraded(second)], move))).toEqual([])
    expect(kinds(history([degraded(second, { user: 'other' })], move))).toEqual(['unexplained degraded decision'])
  })

  it('of a handler are explained while its server did not run', () => {
    const loops = new LoopTimes()
    loops.add('remote', times10ms(500))
    loops.add('library-1', times10ms(500))
    loops.add('server', [0, second, second + 200 * ms, 2 * second])
    const more = { loops }
    expect(kinds(history([degraded(second + 100 * ms, { process: 'remote' })], [], more))).toEqual([])
    expect(kinds(history([degraded(second + 100 * ms)], [], more))).toEqual(['unexplained degraded decision'])
  })

  it('are explained while the harness did not run, and until their process has had 50 ms of loop time', () => {
    const loops = new LoopTimes()
    loops.add('library-1', times10ms(500))
    const ran = (at: number): boolean => at <= second || at >= second + 100 * ms
    loops.add('harness', times10ms(500).filter(ran))
    const at = (afterMs: number) => kinds(history([degraded(second + afterMs * ms)], [], { loops }))
    // A turn of the loop counts as at most 5 ms, and there is one every 10 ms.
    expect([at(0), at(210)]).toEqual([[], []])
    expect([at(-2), at(211)]).toEqual([['unexplained degraded decision'], ['unexplained degraded decision']])
  })
})

const times10ms = (count: number): number[] => Array.from({ length: count }, (_, index) => index * 10 * ms)

describe('answers', () => {
  it('may take the deadline in loop time, and no longer', () => {
    const answered = (tookMs: number) => entry('token', second, { endAt: second + tookMs * ms })
    const connected = entry('token', 0)
    expect(kinds(history([connected, answered(160)]))).toEqual([])
    expect(kinds(history([connected, answered(166)]))).toEqual(['late answer'])
  })

  it('may take the connect timeout before the first exact decision of a process', () => {
    const first = entry('token', 0, { endAt: 2_100 * ms })
    expect(kinds(history([first]))).toEqual([])
    expect(kinds(history([{ ...first, endAt: 2_170 * ms }]))).toEqual(['late answer'])
  })

  it('are not late while the process that had to answer was not running', () => {
    const loops = new LoopTimes()
    loops.add('library-1', [0, second, 3 * second])
    expect(kinds(history([entry('token', 0), entry('token', second, { endAt: 3 * second })], [], { loops }))).toEqual(
      [],
    )
  })

  it('over HTTP may take the turns of three processes, unless one of them was starved', () => {
    const asked = (tookMs: number) => entry('token', second, { process: 'gateway', endAt: second + tookMs * ms })
    const connected = entry('token', 0, { process: 'gateway' })
    expect(kinds(history([connected, asked(280)]))).toEqual([])
    expect(kinds(history([connected, asked(290)]))).toEqual(['late answer'])
    const loops = new LoopTimes()
    for (const process of ['gateway', 'harness']) loops.add(process, times10ms(500))
    expect(kinds(history([connected, asked(600)], [], { loops }))).toEqual(['late answer'])
    const starved = new LoopTimes()
    starved.add('harness', times10ms(500))
    starved.add(
      'gateway',
      times10ms(500).map((at) => at * 1.5),
    )
    expect(kinds(history([connected, asked(900)], [], { loops: starved }))).toEqual([])
  })

  it('must arrive', () => {
    const unanswered = [{ process: 'gateway', startAt: 0, path: '/token' }]
    expect(kinds(history([], [], { unanswered }))).toEqual(['no answer'])
  })

  it('may be errors only while the process is down', () => {
    const failed = entry('token', second, { process: 'server', error: 'ECONNRESET', allowed: false })
    expect(kinds(history([failed], [incident({ down: 'server' })]))).toEqual([])
    expect(kinds(history([failed], [incident({ down: 'gateway' })]))).toEqual(['error'])
  })

  it('without a limit are reported', () => {
    const unlimited = { ...entry('token', 0), charges: [], reason: 'NO_RULE' }
    expect(kinds(history([unlimited]))).toEqual(['no limit'])
  })
})
