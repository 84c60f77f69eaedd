// @ts-check
/**
 * A dimension of growth: the cost of a decision at several points, measured in rounds that visit all points.
 *
 * @typedef {object} Series
 * @property {string} name
 * @property {readonly (readonly number[])[]} costs one list per point, one CPU time in microseconds per round
 * @property {readonly (readonly number[])[]} ratios cost relative to the first point, within the same round
 * @property {boolean} [mustBeFlat] whether the cost must stay within 1.5 times that of the first point
 *
 * @typedef {object} Dimension
 * @property {string} id name of its chart
 * @property {string} title
 * @property {string} axis what grows
 * @property {string} per what a cost is for, such as "decision"
 * @property {string} note
 * @property {readonly number[]} points
 * @property {readonly Series[]} series
 * @property {readonly { name: string, digits: number, values: readonly number[] }[]} [columns] other figures, one per point
 *
 * @typedef {object} GrowthEffort
 * @property {readonly number[]} memoryKeys
 * @property {readonly number[]} redisKeys
 * @property {readonly number[]} rules
 * @property {readonly number[]} bands
 * @property {readonly number[]} processes
 * @property {readonly number[]} primaries
 * @property {readonly number[]} connections
 * @property {number} warmUps
 * @property {number} rounds
 * @property {number} seconds duration of a turn
 * @property {number} operations of a turn in memory
 * @property {(text: string) => void} progress
 */
import { shuffles } from '../access.mjs'
import { median, quantile } from '../measure.mjs'

export const flatWithin = 1.5

/**
 * Visits all points in rounds, in a different order each time, and discards the warm-up rounds.
 *
 * @template Turn
 * @param {string} title
 * @param {number} points
 * @param {GrowthEffort} effort
 * @param {(index: number) => Promise<Turn>} turn
 * @returns {Promise<Turn[][]>} one list per point
 */
export async function visit(title, points, { warmUps, rounds, progress }, turn) {
  const turns = Array.from({ length: points }, () => /** @type {Turn[]} */ ([]))
  const nextOrder = shuffles(points)
  for (let round = -warmUps; round < rounds; round++) {
    progress(`${title}: ${round < 0 ? 'warming up' : `round ${round + 1} of ${rounds}`}`)
    for (const index of nextOrder()) {
      const took = await turn(index)
      if (round >= 0) turns[index]?.push(took)
    }
  }
  return turns
}

/**
 * @template {Readonly<Record<Figure, number>>} Turn
 * @template {string} Figure
 * @param {string} name
 * @param {readonly (readonly Turn[])[]} turns one list per point
 * @param {Figure} figure
 * @param {boolean} [mustBeFlat]
 * @returns {Series}
 */
export function seriesOf(name, turns, figure, mustBeFlat = false) {
  const costs = turns.map((of) => of.map((turn) => turn[figure]))
  const ratios = costs.map((of) => of.map((cost, round) => cost / (costs[0]?.[round] ?? Number.NaN)))
  return { name, costs, ratios, mustBeFlat }
}

/** Returns the growth of a series at its most expensive point, with quartiles. */
export function worstGrowth(/** @type {Series} */ { ratios }) {
  const [worst = []] = [...ratios].sort((a, b) => median(b) - median(a))
  const [low, middle, high] = [0.25, 0.5, 0.75].map((part) => quantile(worst, part))
  return { low: low ?? Number.NaN, median: middle ?? Number.NaN, high: high ?? Number.NaN }
}

export const isFlat = (/** @type {Series} */ series) => worstGrowth(series).high <= flatWithin
