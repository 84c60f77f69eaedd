import { expect, it } from 'vitest'
import { left, renderTable, right } from './table.js'

it('aligns columns', () => {
  expect(
    renderTable(
      [left('key'), right('count')],
      [
        ['ann', '1'],
        ['Jürgen', '100'],
      ],
    ),
  ).toEqual(['key     count', '─────────────', 'ann         1', 'Jürgen    100'])
})

it('replaces characters of cells that would control the terminal', () => {
  const [, , row] = renderTable([left('key')], [['a\u001b[2Jb\u009bc\nd\u202ee']])
  expect(row).toBe('a?[2Jb?c?d?e')
})
