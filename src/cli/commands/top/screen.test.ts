import { expect, it } from 'vitest'
import { enterScreen, leaveScreen, screenOf } from './screen.js'

it('cuts off long lines at the edge of the terminal while it is open', () => {
  expect(enterScreen).toContain('\u001b[?7l')
  expect(leaveScreen).toContain('\u001b[?7h')
})

it('draws no more lines than the terminal has rows', () => {
  expect(screenOf(['a', 'b', 'c', 'd'], 4)).toBe('\u001b[Ha\u001b[K\nb\u001b[K\nc\u001b[K\n\u001b[J')
  expect(screenOf(['a', 'b'], 1)).toBe('\u001b[Ha\u001b[K\n\u001b[J')
})
