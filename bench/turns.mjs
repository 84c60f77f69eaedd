// @ts-check
/**
 * Statistics over the turns of contenders.
 *
 * @template Turn
 * @typedef {{ name: string, turns: readonly Turn[] }} Row
 */
import { median } from './measure.mjs'

/**
 * @template {{ [name in Figure]: number }} Turn
 * @template {string} Figure
 * @param {Row<Turn> | undefined} row
 * @param {Figure} figure
 */
export const typical = (row, figure) => median((row?.turns ?? []).map((turn) => turn[figure]))

/**
 * Returns a figure of `name` relative to `than`: the median of the ratios of each round.
 *
 * @template {{ [name in Figure]: number }} Turn
 * @template {string} Figure
 * @param {readonly Row<Turn>[]} rows
 * @param {Figure} figure
 * @param {string} name
 * @param {string} than
 */
export function timesAs(rows, figure, name, than) {
  const turnsOf = (/** @type {string} */ wanted) => rows.find((row) => row.name === wanted)?.turns ?? []
  const others = turnsOf(than)
  return median(turnsOf(name).map((turn, round) => turn[figure] / (others[round]?.[figure] ?? Number.NaN)))
}
