import { printable } from './output.js'

export interface Column {
  /** One or two lines. */
  readonly title: string
  readonly align: 'left' | 'right'
}

export const left = (title: string): Column => ({ title, align: 'left' })
export const right = (title: string): Column => ({ title, align: 'right' })

/** Renders rows as aligned text columns under a header line. Columns are as wide as their content. */
export function renderTable(columns: readonly Column[], cells: readonly (readonly string[])[]): string[] {
  const rows = cells.map((row) => row.map(printable))
  const titleLines = Math.max(...columns.map(({ title }) => title.split('\n').length))
  const titles = Array.from({ length: titleLines }, (_, line) =>
    columns.map(({ title }) => {
      const lines = title.split('\n')
      return lines[line - (titleLines - lines.length)] ?? ''
    }),
  )
  const widths = columns.map((_, i) => Math.max(...[...titles, ...rows].map((row) => (row[i] ?? '').length)))
  const renderRow = (row: readonly string[]): string =>
    columns.map(({ align }, i) => pad(row[i] ?? '', widths[i] as number, align)).join('  ')
  const rule = widths.map((width) => '─'.repeat(width)).join('──')
  return [...titles.map(renderRow), rule, ...rows.map(renderRow)].map((line) => line.trimEnd())
}

const pad = (text: string, width: number, align: Column['align']): string =>
  align === 'left' ? text.padEnd(width) : text.padStart(width)
