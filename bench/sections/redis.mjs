// @ts-check
/** Limits in Redis: one server, one calling process. */
import { addresses, randomOrder } from '../access.mjs'
import { askedOnce } from '../redis/asked-once.mjs'
import { askForAll, bytesPerKey } from '../redis/bytes-per-key.mjs'
import { cachedRejections } from '../redis/cached-rejections.mjs'
import {
  flexible,
  flexibleNodeRedis,
  flexiblePipelined,
  flexibleUnion,
  fluxGate,
  fluxGateNodeRedis,
} from '../redis/contenders.mjs'
import { costOfOverrides } from '../redis/overrides.mjs'
import { redisGone } from '../redis/redis-gone.mjs'
import { inRounds, speedFigures } from '../redis/rounds.mjs'
import { startServer } from '../redis/server.mjs'
import { timesAs } from '../turns.mjs'

export const title = 'Redis'

const days = 86_400_000
/** Never reached, and refilled so slowly that no bucket is full, and expires, before it is used again. */
const limit = { capacity: 10_000, windowMs: days }
const limits = [1, 2, 3].map((count) => ({ capacity: count * 10_000, windowMs: count * days }))
const band = { capacity: limit.capacity, window: '1d' }
const hotKeys = 100
/** Not reached with few keys either. */
const hotLimit = { capacity: 10_000_000, windowMs: days }
const hotBand = { capacity: hotLimit.capacity, window: '1d' }
const bands = limits.map(({ capacity, windowMs }, i) => ({ label: `band-${i}`, capacity, window: `${windowMs}ms` }))

const ours = 'FluxGate'
const leased = 'FluxGate, LEASED'
const theirs = 'rate-limiter-flexible'
const theirUnion = `${theirs}, RateLimiterUnion`
const few = 64
const many = 512

const algorithms = /** @type {const} */ ([
  'TOKEN_BUCKET',
  'LEAKY_BUCKET',
  'FIXED_WINDOW',
  'SLIDING_WINDOW_LOG',
  'SLIDING_WINDOW_COUNTER',
])

/** @type {import('../results/report.mjs').Section} */
export async function overRedis(effort) {
  const server = await startServer()
  try {
    return await measured(server, effort)
  } finally {
    await server.stop()
  }
}

/** @type {(server: import('../redis/server.mjs').RedisServer, effort: import('../results/report.mjs').Pace) => ReturnType<import('../results/report.mjs').Section>} */
async function measured(server, effort) {
  const { uri } = server
  const allKeys = addresses(effort.redis.keys)
  const keys = Array.from(randomOrder(allKeys.length, 100_000), (index) => /** @type {string} */ (allKeys[index]))

  /** @type {(what: string, askers: readonly import('../redis/closed-loop.mjs').Asker[], concurrency: number, baseline?: string, asked?: readonly string[], pace?: import('../results/report.mjs').Pace) => Promise<import('../redis/rounds.mjs').Row[]>} */
  const contest = async (what, askers, concurrency, baseline = theirs, asked = keys, pace = effort) => {
    for (const asker of askers) await askForAll(asker, allKeys)
    const rows = await inRounds(`${title}, ${what}`, server, askers, asked, concurrency, pace)
    for (const { close } of askers) await close()
    figures.push(speedFigures(`${what}, ${callers(concurrency)}`, rows, baseline))
    return rows
  }
  /** @type {import('../results/report.mjs').FigureTable[]} */
  const figures = []
  const pair = () => [fluxGate(ours, uri, band), flexible(theirs, uri, limit)]
  const trio = () => [fluxGate(ours, uri, { bands }), flexibleUnion(theirUnion, uri, limits)]

  await contest('Single band', pair(), 1)
  const singleFew = await contest('Single band', pair(), few)
  const singleMany = await contest('Single band', pair(), many)
  await contest('Three bands', trio(), 1, theirUnion)
  await contest('Three bands', trio(), few, theirUnion)
  const threeMany = await contest('Three bands', trio(), many, theirUnion)
  const leasing = () => [fluxGate(leased, uri, { ...hotBand, consistency: 'LEASED' }), flexible(theirs, uri, hotLimit)]
  const slow = withLongTurns(effort)
  // Without a target: rarely used keys get no lease and are charged as under EXACT.
  await contest('Single band, LEASED', leasing(), many, theirs, keys, slow)
  const hot = keys.map((_, i) => /** @type {string} */ (allKeys[i % hotKeys]))
  const leasedHot = await contest(`Single band, LEASED, ${hotKeys} keys`, leasing(), many, theirs, hot, slow)
  await contest(
    'Algorithms',
    algorithms.map((algorithm) => fluxGate(algorithm, uri, { ...band, algorithm })),
    many,
    algorithms[0],
  )
  await contest(
    'Single band, other clients',
    [
      await fluxGateNodeRedis(`${ours}, node-redis`, uri, band),
      await flexibleNodeRedis(`${theirs}, node-redis`, uri, limit),
      flexiblePipelined(`${theirs}, ioredis with enableAutoPipelining`, uri, limit),
      flexible(theirs, uri, limit),
    ],
    many,
  )
  const once = await askedOnce(server, effort)
  figures.push(once.figures)
  const overrides = await costOfOverrides(server, allKeys, keys, effort)
  figures.push(overrides.figures)
  figures.push(await cachedRejections(server, effort))
  const fillers = [
    ...algorithms.map((algorithm) => fluxGate(algorithm, uri, { ...band, algorithm })),
    flexible(theirs, uri, limit),
  ]
  figures.push(await bytesPerKey(server, fillers, effort))
  for (const { close } of fillers) await close()
  const gone = await redisGone(server, keys, effort)
  figures.push(gone.table)

  return {
    title,
    note: `One server, one calling process, ${effort.redis.keys.toLocaleString('en')} keys that exist before the first round, limits that are never reached. Each contender has its own connection, ioredis with default options unless the table says otherwise. FluxGate runs with a longer timeout than by default, so that a busy machine causes no degraded decisions.`,
    tables: [],
    figures,
    ratios: [
      {
        what: `single band, ${callers(many)} vs ${theirs}`,
        measured: timesAs(singleMany, 'perSecond', ours, theirs),
        atLeast: 3,
      },
      {
        what: `three bands, ${callers(many)} vs ${theirUnion}`,
        measured: timesAs(threeMany, 'perSecond', ours, theirUnion),
        atLeast: 5,
      },
      {
        what: `single band, LEASED, ${hotKeys} keys, ${callers(many)} vs ${theirs}`,
        measured: timesAs(leasedHot, 'perSecond', leased, theirs),
        atLeast: 25,
      },
      once.ratio,
      {
        what: `p99, single band, ${callers(few)} vs ${theirs}`,
        measured: timesAs(singleFew, 'p99Ms', ours, theirs),
        atMost: 0.8,
      },
      {
        what: `CPU time of Redis, single band, ${callers(few)} vs ${theirs}`,
        measured: timesAs(singleFew, 'serverUs', ours, theirs),
        atMost: 1,
      },
      {
        what: `CPU time of Redis, single band, ${callers(many)} vs ${theirs}`,
        measured: timesAs(singleMany, 'serverUs', ours, theirs),
        atMost: 0.45,
      },
      // From INFO commandstats, which reports wall-clock time: grows if Redis is not scheduled.
      {
        what: `script time, single band, ${callers(few)} vs ${theirs}`,
        measured: timesAs(singleFew, 'scriptUs', ours, theirs),
        atMost: 1,
      },
      {
        what: `script time, single band, ${callers(many)} vs ${theirs}`,
        measured: timesAs(singleMany, 'scriptUs', ours, theirs),
        atMost: 1,
      },
      ...overrides.ratios,
      ...gone.p99s.map(({ concurrency, p99 }) => ({
        what: `p99 ms while Redis is unavailable, ${callers(concurrency)}`,
        measured: p99,
        atMost: 1,
      })),
    ],
  }
}

/** The size of leases takes a while to adapt, so turns are longer. */
const withLongTurns = (/** @type {import('../results/report.mjs').Pace} */ effort) => {
  const { redis } = effort
  return { ...effort, redis: { ...redis, seconds: redis.seconds * 3 } }
}

const callers = (/** @type {number} */ count) => (count === 1 ? 'one caller' : `${count} callers`)
