// @ts-check
/** Limits in Redis, shared with other processes: one server, one process that asks. */
import { addresses, randomOrder } from '../access.mjs'
import { askForAll, bytesPerKey } from '../redis/bytes-per-key.mjs'
import {
  flexible,
  flexibleNodeRedis,
  flexiblePipelined,
  flexibleUnion,
  fluxGate,
  fluxGateNodeRedis,
} from '../redis/contenders.mjs'
import { knownRefusals } from '../redis/known-refusals.mjs'
import { costOfOverrides } from '../redis/overrides.mjs'
import { redisGone } from '../redis/redis-gone.mjs'
import { inRounds, speedFigures } from '../redis/rounds.mjs'
import { startServer } from '../redis/server.mjs'
import { timesAs } from '../turns.mjs'

export const title = 'Redis'

const days = 86_400_000
/** Never reached, and so slow to refill that no bucket is full again, and forgotten, before it is asked for the next time. */
const limit = { capacity: 10_000, windowMs: days }
const limits = [1, 2, 3].map((count) => ({ capacity: count * 10_000, windowMs: count * days }))
const band = { capacity: limit.capacity, window: '1d' }
const hotKeys = 100
/** Not reached by few keys either. */
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

/** @type {import('../report.mjs').Section} */
export async function overRedis(effort) {
  const server = await startServer()
  try {
    return await measured(server, effort)
  } finally {
    await server.stop()
  }
}

/** @type {(server: import('../redis/server.mjs').RedisServer, effort: import('../measure.mjs').Effort) => ReturnType<import('../report.mjs').Section>} */
async function measured(server, effort) {
  const { uri } = server
  const everybody = addresses(effort.redis.keys)
  const keys = Array.from(randomOrder(everybody.length, 100_000), (who) => /** @type {string} */ (everybody[who]))

  /** @type {(what: string, askers: readonly import('../redis/closed-loop.mjs').Asker[], concurrency: number, baseline?: string, asked?: readonly string[], pace?: import('../measure.mjs').Effort) => Promise<import('../redis/rounds.mjs').Row[]>} */
  const contest = async (what, askers, concurrency, baseline = theirs, asked = keys, pace = effort) => {
    for (const asker of askers) await askForAll(asker, everybody)
    const rows = await inRounds(`${title}, ${what}`, server, askers, asked, concurrency, pace)
    for (const { close } of askers) await close()
    figures.push(speedFigures(`${what}, ${callers(concurrency)}`, rows, baseline))
    return rows
  }
  /** @type {import('../report.mjs').FigureTable[]} */
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
  const slow = unhurried(effort)
  // For information: a key that is asked for now and then has nothing to lease, and is charged as by EXACT.
  await contest('Single band, permits leased', leasing(), many, theirs, keys, slow)
  const hot = keys.map((_, i) => /** @type {string} */ (everybody[i % hotKeys]))
  const leasedHot = await contest(`Single band, permits leased, ${hotKeys} keys`, leasing(), many, theirs, hot, slow)
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
  const overrides = await costOfOverrides(server, everybody, keys, effort)
  figures.push(overrides.figures)
  figures.push(await knownRefusals(server, effort))
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
    note: `One server, one process, ${effort.redis.keys.toLocaleString('en')} keys that all exist before the first round, limits that nobody reaches, and a connection of its own for each contender: ioredis as it comes, unless the table says otherwise. FluxGate waits for Redis longer than by default, so that a machine that is busy otherwise does not make it decide alone.`,
    tables: [],
    figures,
    ratios: [
      {
        what: `single band, ${callers(many)} : ${theirs}`,
        measured: timesAs(singleMany, 'perSecond', ours, theirs),
        atLeast: 2,
      },
      {
        what: `three bands, ${callers(many)} : ${theirUnion}`,
        measured: timesAs(threeMany, 'perSecond', ours, theirUnion),
        atLeast: 3,
      },
      {
        what: `single band, leased, ${hotKeys} keys, ${callers(many)} : ${theirs}`,
        measured: timesAs(leasedHot, 'perSecond', leased, theirs),
        atLeast: 8,
      },
      {
        what: `p99, single band, ${callers(few)} : ${theirs}`,
        measured: timesAs(singleFew, 'p99Ms', ours, theirs),
        atMost: 1,
      },
      {
        what: `CPU time of Redis, single band, ${callers(few)} : ${theirs}`,
        measured: timesAs(singleFew, 'serverUs', ours, theirs),
        atMost: 1,
      },
      {
        what: `CPU time of Redis, single band, ${callers(many)} : ${theirs}`,
        measured: timesAs(singleMany, 'serverUs', ours, theirs),
        atMost: 1,
      },
      // The share of it that INFO commandstats names: by the clock, so that it grows when Redis is kept from working.
      {
        what: `time in scripts, single band, ${callers(few)} : ${theirs}`,
        measured: timesAs(singleFew, 'scriptUs', ours, theirs),
        atMost: 1,
      },
      {
        what: `time in scripts, single band, ${callers(many)} : ${theirs}`,
        measured: timesAs(singleMany, 'scriptUs', ours, theirs),
        atMost: 1,
      },
      ...overrides.ratios,
      ...gone.p99s.map(({ concurrency, p99 }) => ({
        what: `p99 in ms while Redis is gone, ${callers(concurrency)}`,
        measured: p99,
        atMost: 1,
      })),
    ],
  }
}

/** How many permits a lease is worth shows after a while: turns are longer, and there are fewer of them. */
const unhurried = (/** @type {import('../measure.mjs').Effort} */ effort) => {
  const { redis } = effort
  return { ...effort, redis: { ...redis, seconds: redis.seconds * 4, rounds: Math.ceil(redis.rounds / 2) } }
}

const callers = (/** @type {number} */ count) => (count === 1 ? 'one caller' : `${count} callers`)
