// @ts-check
/**
 * Measures two builds in pairs, with alternating order. The machine varies more from minute to minute than most changes of
 * the code do, so ratios are computed within each pair.
 *
 * @typedef {Readonly<Record<string, number>>} Figures by name, with the unit
 *
 * @typedef {object} Area
 * @property {(root: URL) => Promise<Figures>} measure measures the build of a checkout once
 * @property {() => Promise<unknown> | unknown} stop
 */
import { median, quantile } from '../measure.mjs'

/**
 * @param {Area} area
 * @param {readonly [URL, URL]} roots this checkout and the other one
 * @param {number} count of pairs
 * @param {(pair: number) => void} onPair
 */
export async function inPairs(area, roots, count, onPair) {
  /** @type {[Figures, Figures][]} */
  const pairs = []
  for (let pair = 0; pair < count; pair++) {
    onPair(pair + 1)
    const [first, second] = pair % 2 === 0 ? [0, 1] : [1, 0]
    /** @type {Figures[]} */
    const measured = []
    for (const index of [first, second]) measured[index] = await area.measure(/** @type {URL} */ (roots[index]))
    pairs.push(/** @type {[Figures, Figures]} */ (measured))
  }
  return pairs
}

/**
 * @param {string} title
 * @param {readonly (readonly [Figures, Figures])[]} pairs
 * @returns {import('../results/report.mjs').FigureTable}
 */
export function ratioFigures(title, pairs) {
  const names = Object.keys(pairs[0]?.[0] ?? {})
  const lines = names.map((name) => {
    const of = (/** @type {0 | 1} */ side) => pairs.map((pair) => pair[side][name] ?? Number.NaN)
    const [own, other] = [of(0), of(1)]
    const ratios = own.map((value, index) => value / (other[index] ?? Number.NaN))
    const spread = `${quantile(ratios, 0.25).toFixed(2)}–${quantile(ratios, 0.75).toFixed(2)}`
    return [name, shown(median(own)), shown(median(other)), median(ratios).toFixed(2), spread]
  })
  return { title, head: ['figure', 'this', 'other', 'ratio', 'quartiles'], lines }
}

const shown = (/** @type {number} */ value) =>
  value >= 1_000 ? Math.round(value).toLocaleString('en') : value.toFixed(value < 10 ? 2 : 1)
