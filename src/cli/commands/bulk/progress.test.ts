import { describe, expect, it } from 'vitest'
import { lineOf, progressBar } from './progress.js'

const progress = { records: 250_000, done: 250_000, failed: 0 }

describe('bulk progress', () => {
  it('shows percentage, rate and remaining time', () => {
    expect(lineOf(progress, 0.25, 1_000)).toBe('██████░░░░░░░░░░░░░░░░░░ 25%  250,000 records  250,000/s  3s left')
    expect(lineOf({ ...progress, failed: 3 }, 0.5, 90_000)).toBe(
      '████████████░░░░░░░░░░░░ 50%  250,000 records  2,778/s  3 failed  1m30s left',
    )
  })

  it('shows count and rate if the input size is unknown', () => {
    expect(lineOf(progress, undefined, 2_000)).toBe('250,000 records  125,000/s')
  })

  it('prints only to a terminal, at most every 200 ms', () => {
    const shown = (isTTY: boolean): string[] => {
      const lines: string[] = []
      let now = 0
      const stream = { isTTY, write: (text: string) => lines.push(text) > 0 } as unknown as NodeJS.WriteStream
      const bar = progressBar(stream, () => now)
      for (; now < 1_000; now += 50) bar.show(progress)
      return lines
    }
    expect(shown(true)).toHaveLength(4)
    expect(shown(false)).toEqual([])
  })
})
