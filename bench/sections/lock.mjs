// @ts-check
/** Fifty callers that acquire the same lock concurrently and hold it for a few milliseconds each. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import Redlock from 'redlock'
import { redisLock } from '../fluxgate.mjs'
import { Broken, median } from '../measure.mjs'
import { startServer } from '../redis/server.mjs'
import { figure, spreadFigure } from '../results/report.mjs'

export const title = 'Lock'

const waiters = 50
const workMs = 5
const ttlMs = 30_000
const ours = 'FluxGate'
const oursFair = 'FluxGate, fair'
const theirs = 'redlock'
const theirsFrequent = 'redlock, retry every 10 ms'

/**
 * @typedef {import('../../test/servers/redis-server.js').RedisServer} RedisServer
 *
 * @typedef {object} Contender
 * @property {string} name
 * @property {(name: string, work: () => Promise<void>) => Promise<unknown>} using
 * @property {() => unknown} close
 *
 * @typedef {object} Round
 * @property {number} ms from the first request to the end of the last critical section
 * @property {number} gapMs median time between the end of one critical section and the start of the next
 * @property {number} commands executed by the server, including those of scripts
 */

/** @type {import('../results/report.mjs').Section} */
export async function lock({ redis, progress }) {
  const server = await startServer()
  const contenders = [
    fluxGateLock(ours, server, false),
    fluxGateLock(oursFair, server, true),
    redlock(theirs, server, { retryCount: -1 }),
    redlock(theirsFrequent, server, { retryCount: -1, retryDelay: 10, retryJitter: 5 }),
  ]
  /** @type {Map<string, Round[]>} */
  const rows = new Map(contenders.map(({ name }) => [name, []]))
  try {
    for (let round = -redis.warmUps; round < redis.rounds; round++) {
      progress(`${title}: ${round < 0 ? 'warming up' : `round ${round + 1} of ${redis.rounds}`}`)
      for (let turn = 0; turn < contenders.length; turn++) {
        const contender = /** @type {Contender} */ (contenders[(turn + round + redis.warmUps) % contenders.length])
        const took = await pass(contender, server)
        if (round >= 0) rows.get(contender.name)?.push(took)
      }
    }
  } finally {
    for (const { close } of contenders) await close()
    await server.stop()
  }
  const of = (/** @type {string} */ name, /** @type {keyof Round} */ what) =>
    median((rows.get(name) ?? []).map((round) => round[what]))
  const shares = (rows.get(ours) ?? []).map(({ ms }, round) => ms / (rows.get(theirs)?.[round]?.ms ?? Number.NaN))
  return {
    title,
    note: `${waiters} callers in one process acquire the same lock concurrently and hold it for ${workMs} ms each; without overhead this takes ${waiters * workMs} ms. One server; each contender has its own connection, ioredis with default options; redlock with default options, except that retries are unlimited.`,
    tables: [],
    figures: [
      {
        title: `${waiters} callers`,
        head: ['contender', 'total ms', 'handover ms', 'commands'],
        lines: contenders.map(({ name }) => [
          name,
          spreadFigure(of(name, 'ms'), 0),
          figure(of(name, 'gapMs'), 2),
          figure(of(name, 'commands')),
        ]),
      },
    ],
    ratios: [
      { what: `total ms vs ${theirs}`, measured: median(shares), atMost: 0.5 },
      { what: 'median handover ms', measured: of(ours, 'gapMs'), atMost: 3 },
    ],
  }
}

/** @returns {Promise<Round>} */
async function pass(/** @type {Contender} */ { name, using }, /** @type {RedisServer} */ server) {
  /** @type {number[]} */
  const startedAt = []
  /** @type {number[]} */
  const endedAt = []
  let inside = 0
  const before = await commandsOf(server)
  const askedAt = performance.now()
  await Promise.all(
    Array.from({ length: waiters }, () =>
      using('bench', async () => {
        startedAt.push(performance.now())
        if (++inside > 1) throw new Broken(`${name} granted the lock to two callers at the same time.`)
        await sleep(workMs)
        inside--
        endedAt.push(performance.now())
      }),
    ),
  )
  const ms = performance.now() - askedAt
  const gaps = startedAt.slice(1).map((at, i) => at - (endedAt[i] ?? Number.NaN))
  return { ms, gapMs: median(gaps), commands: (await commandsOf(server)) - before }
}

/** @returns {Contender} */
function fluxGateLock(/** @type {string} */ name, /** @type {RedisServer} */ { port }, /** @type {boolean} */ fair) {
  const client = new Redis(port)
  const lock = redisLock(client, { prefix: `bench-${fair}`, ttlMs, waitMs: 60_000, fair })
  return {
    name,
    using: (key, work) => lock.using(key, work),
    async close() {
      await lock.close()
      client.disconnect()
    },
  }
}

/** @returns {Contender} */
function redlock(
  /** @type {string} */ name,
  /** @type {RedisServer} */ { port },
  /** @type {Partial<import('redlock').Settings>} */ settings,
) {
  const client = new Redis(port)
  const locks = new Redlock([/** @type {any} */ (client)], settings)
  return { name, using: (key, work) => locks.using([`${name}:${key}`], ttlMs, work), close: () => client.disconnect() }
}

async function commandsOf(/** @type {RedisServer} */ server) {
  return Number(/^total_commands_processed:(\d+)/m.exec(String(await server.call('INFO', 'stats')))?.[1])
}
