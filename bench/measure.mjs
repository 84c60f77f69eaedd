// @ts-check
/**
 * Measures contenders side by side. They take turns in short rounds, in a different order each time, so that other load on
 * the machine affects all of them equally, and no contender always runs after the same predecessor: its cache contents
 * changed figures by up to 10 %. The result of a run is the median of its rounds.
 *
 * The figure is the CPU time of all threads, which includes background garbage collection and excludes other programs. On an
 * idle machine it equals wall-clock time.
 *
 * @typedef {object} Contender
 * @property {string} name
 * @property {(order: Uint32Array) => Tally | Promise<Tally>} batch makes one request per entry of `order`, an index of a key.
 *   Every contender has its own loop, so that the compiler sees one callee per loop, as in a program with one limiter.
 * @property {(() => unknown) | undefined} [close]
 *
 * @typedef {object} Tally
 * @property {number} allowed number of allowed requests
 * @property {unknown} last the last result; keeping it prevents the compiler from removing the computation
 *
 * @typedef {object} Row
 * @property {string} name
 * @property {readonly number[]} rounds nanoseconds of CPU time per operation, one figure per round
 * @property {readonly number[]} clock the same in wall-clock time
 */

import { shuffles } from './access.mjs'

/** Thrown if a contender does not work as expected, so that its figures would be meaningless. */
export class Broken extends Error {}

/**
 * @param {string} title
 * @param {readonly Contender[]} contenders
 * @param {Uint32Array} order
 * @param {import('./results/report.mjs').Pace} effort
 * @param {(share: number) => boolean} plausible returns whether this share of allowed requests is expected
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
 * Runs rounds in which every contender has one turn, in a different order each time. Warm-up rounds are discarded.
 *
 * @param {string} title
 * @param {readonly string[]} names
 * @param {import('./results/report.mjs').Pace} effort
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
  // Garbage and timers of the previous contender must not count against this one.
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
      `${name} allowed ${(share * 100).toFixed(1)} % of the requests, which is not what this table measures.`,
    )
  return { cpu: ((used.user + used.system) * 1e3) / order.length, clock }
}

export function collectGarbage(/** @type {'major' | 'minor'} */ type) {
  if (globalThis.gc === undefined)
    throw new Broken('The benchmark requires node --expose-gc. Run it with npm run bench.')
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
 * Returns the speed of `name` relative to `than`: the median of the ratios of each round, because both sides of a round ran
 * under the same conditions.
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
