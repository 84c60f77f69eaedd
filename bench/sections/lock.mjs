// @ts-check
/** Fifty who want the same lock at the same moment, for a few milliseconds each. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import Redlock from 'redlock'
import { redisLock } from '../fluxgate.mjs'
import { Broken, median } from '../measure.mjs'
import { startServer } from '../redis/server.mjs'

export const title = 'Lock'

const waiters = 50
const workMs = 5
const ttlMs = 30_000
const ours = 'FluxGate'
const ourLine = 'FluxGate, fair'
const theirs = 'redlock'
const theirsHurried = 'redlock, asking every 10 ms'

/**
 * @typedef {import('../../test/servers/redis-server.js').RedisServer} RedisServer
 *
 * @typedef {object} Contender
 * @property {string} name
 * @property {(name: string, work: () => Promise<void>) => Promise<unknown>} using
 * @property {() => unknown} close
 *
 * @typedef {object} Round
 * @property {number} ms from the first who asks to the last who is done
 * @property {number} gapMs median from the end of one's work to the start of the next one's
 * @property {number} commands that the server was sent or told by scripts
 */

/** @type {import('../report.mjs').Section} */
export async function lock({ redis, progress }) {
  const server = await startServer()
  const contenders = [
    fluxGateLock(ours, server, false),
    fluxGateLock(ourLine, server, true),
    redlock(theirs, server, { retryCount: -1 }),
    redlock(theirsHurried, server, { retryCount: -1, retryDelay: 10, retryJitter: 5 }),
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
    note: `${waiters} callers of one process ask for the same lock at the same moment and hold it for ${workMs} ms each: ${waiters * workMs} ms if nothing came in between. One server, ioredis as it comes, a connection of its own for each contender; redlock as it comes, but for the number of times that it tries, which is not limited here.`,
    tables: [],
    figures: [
      {
        title: `${waiters} waiters`,
        head: ['contender', 'ms until all are done', 'ms between two holders', 'commands'],
        lines: contenders.map(({ name }) => [
          name,
          of(name, 'ms').toFixed(0),
          of(name, 'gapMs').toFixed(2),
          of(name, 'commands').toFixed(0),
        ]),
      },
    ],
    ratios: [
      { what: `ms until all are done : ${theirs}`, measured: median(shares), atMost: 0.5 },
      { what: 'median ms between two holders', measured: of(ours, 'gapMs'), atMost: 3 },
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
        if (++inside > 1) throw new Broken(`${name} let two in at the same time.`)
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
