// @ts-check
/**
 * Findings of one run, their summary over several runs, and its Markdown, for the terminal and for RESULTS.md.
 *
 * @typedef {import('../measure.mjs').Row} Row
 *
 * @typedef {import('../runs/effort.mjs').Effort & { progress: (text: string) => void }} Pace
 *
 * @typedef {(pace: Pace) => Promise<Findings>} Section
 *
 * @typedef {object} Findings of one run
 * @property {string} title
 * @property {string} note
 * @property {readonly { title: string, rows: readonly Row[], baseline: string }[]} tables
 * @property {readonly FigureTable[]} [figures] tables with other columns
 * @property {readonly Ratio[]} ratios
 *
 * @typedef {object} Figure a number in a table
 * @property {number} value
 * @property {number} digits decimal places
 * @property {boolean} [spread] whether quartiles are shown
 *
 * @typedef {object} FigureTable
 * @property {string} title
 * @property {readonly string[]} head
 * @property {readonly (readonly (string | Figure)[])[]} lines
 *
 * @typedef {object} Ratio
 * @property {string} what
 * @property {number} measured
 * @property {number} [atLeast]
 * @property {number} [atMost]
 * @property {boolean} [always] whether every run must meet the target, as for limits that must never be exceeded
 *
 * @typedef {Omit<Ratio, 'measured'> & { samples: readonly number[] }} Target one sample per run
 *
 * @typedef {Omit<Figure, 'value'> & { values: readonly number[] }} Cell one value per run
 *
 * @typedef {object} Results of all runs
 * @property {string} title
 * @property {string} note
 * @property {number} runs
 * @property {number} [minutes] duration of all runs
 * @property {readonly { title: string, head: readonly string[], lines: readonly (readonly (string | Cell)[])[] }[]} tables
 * @property {readonly Target[]} targets
 */
import { Broken, median, quantile, timesAsFast } from '../measure.mjs'

/** @type {(value: number, digits?: number) => Figure} */
export const figure = (value, digits = 0) => ({ value, digits })

/** A figure that is shown with its quartiles. @type {(value: number, digits?: number) => Figure} */
export const spreadFigure = (value, digits = 2) => ({ value, digits, spread: true })

/**
 * Merges the findings of runs of the same section. Each run contributes one value to each figure and to each ratio.
 *
 * @param {readonly Findings[]} findings
 * @returns {Results}
 */
export function merge(findings) {
  const [first] = findings
  if (first === undefined) throw new Broken('A section needs at least one run.')
  const tablesOfRuns = findings.map(({ tables, figures = [] }) => [...tables.map(speedTable), ...figures])
  const tables = (tablesOfRuns[0] ?? []).map(({ title, head, lines }, t) => ({
    title,
    head,
    lines: lines.map((line, l) =>
      line.map((cell, c) => {
        if (typeof cell === 'string') return cell
        const { digits, spread = false } = cell
        const values = tablesOfRuns.map((tables) => numberOf(tables[t]?.lines[l]?.[c]))
        return { digits, spread, values }
      }),
    ),
  }))
  const targets = first.ratios.map(({ measured: _, ...ratio }, r) => ({
    ...ratio,
    samples: findings.map(({ ratios }) => ratios[r]?.measured ?? Number.NaN),
  }))
  return { title: first.title, note: first.note, runs: findings.length, tables, targets }
}

const numberOf = (/** @type {string | Figure | undefined} */ cell) =>
  typeof cell === 'object' ? cell.value : Number.NaN

/** Formats a section with its tables. */
export function sectionText(/** @type {Results} */ { title, note, tables }, measured = '') {
  const parts = [`## ${title}`, note]
  if (measured !== '') parts.push(measured)
  for (const { title, head, lines } of tables) {
    const cells = lines.map((line) => line.map((cell) => (typeof cell === 'string' ? cell : cellText(cell))))
    parts.push(`### ${title}`, table(head, cells))
  }
  return `${parts.join('\n\n')}\n`
}

/**
 * Returns one row per target: section, figure, median, quartiles, number of runs, target and result. A target is met if the
 * less favourable quartile meets it, so a few lucky runs do not count.
 */
export function verdicts(/** @type {Results} */ { title, targets }) {
  return targets.map(({ what, samples, atLeast, atMost, always = false }) => {
    const [low, high] = always
      ? [Math.min(...samples), Math.max(...samples)]
      : [quantile(samples, 0.25), quantile(samples, 0.75)]
    const met = low >= (atLeast ?? Number.NEGATIVE_INFINITY) && high <= (atMost ?? Number.POSITIVE_INFINITY)
    const target = atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`
    const spread = `${shown(low)}–${shown(high)}`
    return [title, what, shown(median(samples)), spread, `${samples.length}`, target, met ? 'met' : 'not met']
  })
}

const shown = (/** @type {number} */ value) => value.toFixed(value < 100 ? 2 : 0)

export const verdictHead = ['section', 'figure', 'median', 'quartiles', 'runs', 'target', 'result']

export function verdictText(/** @type {readonly (readonly string[])[]} */ lines) {
  if (lines.length === 0) return ''
  return `## Targets\n\n${table(verdictHead, lines, 2)}\n`
}

/** @type {(table: { title: string, rows: readonly Row[], baseline: string }) => FigureTable} */
function speedTable({ title, rows, baseline }) {
  const lines = rows.map(({ name, rounds, clock }) => {
    const ns = median(rounds)
    return [
      name,
      figure(1e9 / ns),
      spreadFigure(ns, 0),
      figure(median(clock)),
      spreadFigure(timesAsFast(rows, name, baseline)),
    ]
  })
  return { title, head: ['contender', 'ops/s', 'ns/op', 'wall clock', `relative to ${baseline}`], lines }
}

function cellText(/** @type {Cell} */ { values, digits, spread }) {
  const text = (/** @type {number} */ value) =>
    value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
  const middle = median(values)
  if (Number.isNaN(middle)) return '–'
  if (!spread || values.length === 1) return text(middle)
  return `${text(middle)} (${text(quantile(values, 0.25))}–${text(quantile(values, 0.75))})`
}

/**
 * Formats a table whose first `texts` columns are left-aligned text and the others right-aligned figures.
 *
 * @param {readonly string[]} head
 * @param {readonly (readonly string[])[]} rows
 * @param {number} texts
 */
export function table(head, rows, texts = 1) {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0), 3))
  const line = (/** @type {readonly string[]} */ row) => {
    const cells = row.map((cell, column) => {
      const width = widths[column] ?? 0
      return column < texts ? cell.padEnd(width) : cell.padStart(width)
    })
    return `| ${cells.join(' | ')} |`
  }
  const rule = widths.map((width, column) => (column < texts ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [line(head), `| ${rule.join(' | ')} |`, ...rows.map(line)].join('\n')
}
