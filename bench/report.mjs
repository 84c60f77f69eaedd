// @ts-check
/**
 * Figures as text: the same Markdown on the terminal and in RESULTS.md.
 *
 * @typedef {import('./measure.mjs').Row} Row
 *
 * @typedef {(effort: import('./measure.mjs').Effort) => Promise<Findings>} Section
 *
 * @typedef {object} Findings
 * @property {string} title
 * @property {string} note
 * @property {readonly { title: string, rows: readonly Row[], baseline: string }[]} tables
 * @property {{ title: string, rows: readonly { name: string, perKey: number, fillNs: number }[] }} [memory]
 * @property {readonly Ratio[]} ratios
 *
 * @typedef {object} Ratio
 * @property {string} what
 * @property {number} measured
 * @property {number} [atLeast]
 * @property {number} [atMost]
 */
import { median, quantile, timesAsFast } from './measure.mjs'

/** One section: its tables. */
export function sectionText(/** @type {Findings} */ { title, note, tables, memory }) {
  const parts = [`## ${title}`, note]
  for (const { title, rows, baseline } of tables) parts.push(`### ${title}`, speedTable(rows, baseline))
  if (memory) parts.push(`### ${memory.title}`, memoryTable(memory.rows))
  return `${parts.join('\n\n')}\n`
}

/** What was demanded, and what came of it. */
export function verdictText(/** @type {readonly Findings[]} */ findings) {
  const rows = findings
    .flatMap(({ ratios }) => ratios)
    .map(({ what, measured, atLeast, atMost }) => {
      const met = measured >= (atLeast ?? Number.NEGATIVE_INFINITY) && measured <= (atMost ?? Number.POSITIVE_INFINITY)
      const demanded = atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`
      return [what, measured.toFixed(measured < 100 ? 2 : 0), demanded, met ? 'met' : 'not met']
    })
  if (rows.length === 0) return ''
  return `## Demands\n\n${table(['what', 'measured', 'demanded', ''], rows)}\n`
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
  return table(['contender', 'ops/s', 'ns/op', 'middle half', 'by the clock', `times as fast as ${baseline}`], lines)
}

/** @type {(rows: readonly { name: string, perKey: number, fillNs: number }[]) => string} */
function memoryTable(rows) {
  const lines = rows.map(({ name, perKey, fillNs }) => [name, perKey.toFixed(0), fillNs.toFixed(0)])
  return table(['contender', 'bytes per key', 'ns to add one'], lines)
}

const whole = (/** @type {number} */ value) => Math.round(value).toLocaleString('en')

/** The first column is text, the others are figures. */
function table(/** @type {readonly string[]} */ head, /** @type {readonly (readonly string[])[]} */ rows) {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0), 3))
  const line = (/** @type {readonly string[]} */ row) => {
    const cells = row.map((cell, column) => {
      const width = widths[column] ?? 0
      return column === 0 ? cell.padEnd(width) : cell.padStart(width)
    })
    return `| ${cells.join(' | ')} |`
  }
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [line(head), `| ${rule.join(' | ')} |`, ...rows.map(line)].join('\n')
}
