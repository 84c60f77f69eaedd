import { expect, it } from 'vitest'
import { retryDelayMs } from './settings.js'

const attempts = Array.from({ length: 1_000 }, (_, i) => i + 1)

it('never waits longer than 250 ms before the next connection attempt', () => {
  expect(Math.max(...attempts.map((attempt) => retryDelayMs(attempt, false)))).toBeLessThanOrEqual(250)
})

it('waits one second if the server rejected the connection', () => {
  expect(new Set(attempts.map((attempt) => retryDelayMs(attempt, true)))).toEqual(new Set([1_000]))
})
