// @ts-check
/**
 * Formats results as Markdown, for the terminal and for RESULTS.md.
 *
 * @typedef {import('./measure.mjs').Row} Row
 *
 * @typedef {(effort: import('./measure.mjs').Effort) => Promise<Findings>} Section
 *
 * @typedef {object} Findings
 * @property {string} title
 * @property {string} note
 * @property {readonly { title: string, rows: readonly Row[], baseline: string }[]} tables
 * @property {readonly FigureTable[]} [figures] tables with other columns
 * @property {readonly Ratio[]} ratios
 *
 * @typedef {object} FigureTable
 * @property {string} title
 * @property {readonly string[]} head
 * @property {readonly (readonly string[])[]} lines
 *
 * @typedef {object} Ratio
 * @property {string} what
 * @property {number} measured
 * @property {number} [atLeast]
 * @property {number} [atMost]
 */
import { median, quantile, timesAsFast } from './measure.mjs'

/** Formats a section with its tables. */
export function sectionText(/** @type {Findings} */ { title, note, tables, figures = [] }, measured = '') {
  const parts = [`## ${title}`, note]
  if (measured !== '') parts.push(measured)
  for (const { title, rows, baseline } of tables) parts.push(`### ${title}`, speedTable(rows, baseline))
  for (const { title, head, lines } of figures) parts.push(`### ${title}`, table(head, lines))
  return `${parts.join('\n\n')}\n`
}

/** Returns one row per target: section, figure, measured value, target and result. */
export function verdicts(/** @type {Findings} */ { title, ratios }) {
  return ratios.map(({ what, measured, atLeast, atMost }) => {
    const met = measured >= (atLeast ?? Number.NEGATIVE_INFINITY) && measured <= (atMost ?? Number.POSITIVE_INFINITY)
    const target = atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`
    return [title, what, measured.toFixed(measured < 100 ? 2 : 0), target, met ? 'met' : 'not met']
  })
}

export function verdictText(/** @type {readonly (readonly string[])[]} */ lines) {
  if (lines.length === 0) return ''
  return `## Targets\n\n${table(['section', 'figure', 'measured', 'target', 'result'], lines, 2)}\n`
}

/** @type {(rows: readonly Row[], baseline: string) => string} */
function speedTable(rows, baseline) {
  const lines = rows.map(({ name, rounds, clock }) => {
    const ns = median(rounds)
    return [
      name,
      whole(1e9 / ns),
      ns.toFixed(0),
      `${quantile(rounds, 0.25).toFixed(0)}–${quantile(rounds, 0.75).toFixed(0)}`,
      median(clock).toFixed(0),
      `${timesAsFast(rows, name, baseline).toFixed(2)}`,
    ]
  })
  const head = ['contender', 'ops/s', 'ns/op', 'interquartile range', 'wall clock', `relative to ${baseline}`]
  return table(head, lines)
}

const whole = (/** @type {number} */ value) => Math.round(value).toLocaleString('en')

/**
 * Formats a table whose first `texts` columns are left-aligned text and the others right-aligned figures.
 *
 * @param {readonly string[]} head
 * @param {readonly (readonly string[])[]} rows
 * @param {number} texts
 */
function table(head, rows, texts = 1) {
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
