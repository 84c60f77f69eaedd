// @ts-check
/**
 * Side by side: all contenders of a table take turns in short rounds, in another order each time, so that whatever else the
 * machine does hits all of them alike, and nobody always finds the caches as the same one has left them: that made up to a
 * tenth. The median of the rounds counts.
 *
 * What is measured is CPU time, of all threads, so garbage collection in the background is included and other programs
 * that run meanwhile are not. On a machine with nothing else to do it is what the clock says.
 *
 * @typedef {object} Contender
 * @property {string} name
 * @property {(order: Uint32Array) => Tally | Promise<Tally>} batch asks once per entry of `order`, which says for which key.
 *   Every contender has a loop of its own, so that the compiler sees one callee per loop, as in a program that uses one limiter.
 * @property {(() => unknown) | undefined} [close]
 *
 * @typedef {object} Tally
 * @property {number} allowed how many were let through
 * @property {unknown} last the last answer. Whoever keeps it until the end of the loop has to make every answer for real.
 *
 * @typedef {object} Row
 * @property {string} name
 * @property {readonly number[]} rounds nanoseconds of CPU time per operation, one figure per round
 * @property {readonly number[]} clock the same by the clock on the wall
 *
 * @typedef {object} Effort
 * @property {number} keys in the tables with many keys
 * @property {number} operations per batch
 * @property {number} warmUps rounds that do not count
 * @property {number} rounds
 * @property {number} memoryKeys
 * @property {RedisEffort} redis
 * @property {number} bulkRecords
 * @property {number} indexRecords in the search index
 * @property {number} indexQueries of each kind
 * @property {number} bulkRounds
 * @property {{ seconds: number, warmUps: number, rounds: number }} http a turn lasts for so many seconds; some rounds do not count
 * @property {FaultsEffort} faults
 * @property {(text: string) => void} progress
 *
 * @typedef {object} FaultsEffort
 * @property {number} runs of each kind of cold start
 * @property {number} processes that start at once in a run
 * @property {number} busyLoops that run beside everything
 * @property {number} cuts how often a single lost connection is measured
 * @property {number} cutSeconds how long connections are lost again and again
 *
 * @typedef {object} RedisEffort
 * @property {number} keys
 * @property {number} seconds a turn lasts
 * @property {number} warmUps rounds that do not count
 * @property {number} rounds
 * @property {number} watchSeconds how long it is watched what is answered without Redis
 * @property {number} memoryKeys
 */

import { shuffles } from './access.mjs'

/** Said of a contender that does not do its work; the figures would mean nothing. */
export class Broken extends Error {}

/**
 * @param {string} title
 * @param {readonly Contender[]} contenders
 * @param {Uint32Array} order
 * @param {Effort} effort
 * @param {(share: number) => boolean} plausible whether this share of allowed requests is what the table is about
 * @returns {Promise<Row[]>}
 */
export async function sideBySide(title, contenders, order, effort, plausible) {
  const names = contenders.map(({ name }) => name)
  const rows = await inTurns(title, names, effort, {
    beforeRound: () => collectGarbage('major'),
    turn: (index) => time(/** @type {Contender} */ (contenders[index]), order, plausible),
  })
  for (const { close } of contenders) await close?.()
  return rows
}

/**
 * Rounds in which everybody has a turn, in another order each time; those that warm up do not count.
 *
 * @param {string} title
 * @param {readonly string[]} names
 * @param {Effort} effort
 * @param {{ turn: (index: number) => Promise<{ cpu: number, clock: number }>, beforeRound?: () => void }} what
 * @returns {Promise<Row[]>}
 */
export async function inTurns(title, names, { warmUps, rounds, progress }, { turn, beforeRound }) {
  const rows = names.map((name) => ({
    name,
    rounds: /** @type {number[]} */ ([]),
    clock: /** @type {number[]} */ ([]),
  }))
  const nextOrder = shuffles(names.length)
  for (let round = -warmUps; round < rounds; round++) {
    progress(`${title}: ${round < 0 ? 'warming up' : `round ${round + 1} of ${rounds}`}`)
    beforeRound?.()
    for (const index of nextOrder()) {
      const took = await turn(index)
      if (round < 0) continue
      rows[index]?.rounds.push(took.cpu)
      rows[index]?.clock.push(took.clock)
    }
  }
  return rows
}

/**
 * @param {Contender} contender
 * @param {Uint32Array} order
 * @param {(share: number) => boolean} plausible
 */
async function time({ name, batch }, order, plausible) {
  // What the contender before left behind is not paid for by this one, and its timers have their turn.
  await new Promise(setImmediate)
  collectGarbage('minor')
  const startedAt = performance.now()
  const usedBefore = process.cpuUsage()
  const { allowed, last } = await batch(order)
  const used = process.cpuUsage(usedBefore)
  const clock = ((performance.now() - startedAt) * 1e6) / order.length
  const share = allowed / order.length
  if (last === undefined || !plausible(share))
    throw new Broken(
      `${name} let ${(share * 100).toFixed(1)} % of the requests through, which is not what is measured here.`,
    )
  return { cpu: ((used.user + used.system) * 1e3) / order.length, clock }
}

export function collectGarbage(/** @type {'major' | 'minor'} */ type) {
  if (globalThis.gc === undefined) throw new Broken('The bench needs node --expose-gc; npm run bench passes it.')
  globalThis.gc({ type, execution: 'sync' })
}

export function median(/** @type {readonly number[]} */ values) {
  return quantile(values, 0.5)
}

export function quantile(/** @type {readonly number[]} */ values, /** @type {number} */ part) {
  const sorted = [...values].sort((a, b) => a - b)
  const at = (sorted.length - 1) * part
  const low = sorted[Math.floor(at)] ?? Number.NaN
  const high = sorted[Math.ceil(at)] ?? Number.NaN
  return low + (high - low) * (at - Math.floor(at))
}

/**
 * How many times as fast `name` is as `than`: the median of what each round says, since both of a round saw the same machine.
 *
 * @param {readonly Row[]} rows
 * @param {string} name
 * @param {string} than
 */
export function timesAsFast(rows, name, than) {
  const ours = roundsOf(rows, name)
  return median(roundsOf(rows, than).map((ns, round) => ns / (ours[round] ?? Number.NaN)))
}

function roundsOf(/** @type {readonly Row[]} */ rows, /** @type {string} */ name) {
  return rows.find((row) => row.name === name)?.rounds ?? []
}
