import { describe, expect, it } from 'vitest'
import type { AlgorithmName, Band } from '../../../core/rule.js'
import { burst, simulateBands } from '../../../simulate/index.js'
import { type Paint, paintFor, plainText } from '../../output/output.js'
import { renderSimulation } from './report.js'

const second = 1_000_000
const band = (algorithm: AlgorithmName): Band => ({
  label: algorithm,
  algorithm,
  refill: 'STEADY',
  capacity: 10,
  refillTokens: 10,
  windowTicks: second,
})

/** Three bursts across a window boundary, each with twice the capacity. */
async function rendered(names: readonly AlgorithmName[], width = 80, paint: Paint = plainText): Promise<string[]> {
  const arrivals = burst({ size: 20, every: 2 * second, spread: 200_000 }, { from: 900_000, until: 6 * second })
  const simulation = await simulateBands(names.map(band), arrivals, { startAt: 0, until: 6 * second })
  return renderSimulation(simulation, width, paint)
}

describe('simulation report', () => {
  it('draws a fixed window above the limit line and a sliding window below it', async () => {
    expect(await rendered(['FIXED_WINDOW', 'SLIDING_WINDOW_LOG'])).toEqual([
      '                                       most in   gap         delay',
      'algorithm           allowed  rejected   any 1s   min    max   mean  max',
      '───────────────────────────────────────────────────────────────────────',
      'FIXED_WINDOW             60         0       20  10ms  1.81s      0    0',
      'SLIDING_WINDOW_LOG       30        30       10  10ms  1.91s      0    0',
      '',
      'offered │         ██                  ██                  ██',
      '',
      'FIXED_WINDOW                                                 20 in 1s, limit 10',
      '     20 ┤          █████████▆          █████████▆          █████████▆',
      '        │          ██████████          ██████████          ██████████',
      '     10 ┼┄┄┄┄┄┄┄┄┄┄██████████┄┄┄┄┄┄┄┄┄┄██████████┄┄┄┄┄┄┄┄┄┄██████████',
      '        │         ███████████▆        ███████████▆        ███████████',
      '        │         ████████████        ████████████        ███████████',
      'passing │         ██                  ██                  ██',
      '',
      'SLIDING_WINDOW_LOG                                           10 in 1s, limit 10',
      '     10 ┼┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄',
      '        │         ██████████▆         ██████████▆         ██████████▆',
      '        │         ███████████         ███████████         ███████████',
      'passing │         █                   █                   █',
      '        └┬─────────┬─────────┬─────────┬─────────┬─────────┬─────────',
      '         0s        1s        2s        3s        4s        5s',
      '',
      'bars: requests that passed in the preceding 1s; ┄ marks the limit',
      'offered, passing: requests per column of 100ms',
    ])
  })

  it('draws the output of a leaky bucket as an even line', async () => {
    const lines = await rendered(['LEAKY_BUCKET'])
    expect(lines).toContain('passing │         ▁▁▁▁▁▁▁▁▁▁▁         ▁▁▁▁▁▁▁▁▁▁▁         ▁▁▁▁▁▁▁▁▁▁▁')
  })

  it.each([40, 60, 80, 132, 200])('fits into %i columns', async (width) => {
    const chart = (await rendered(['FIXED_WINDOW', 'LEAKY_BUCKET'], width)).slice(6, -3)
    expect(Math.max(...chart.map((line) => line.length))).toBeLessThan(width)
  })

  it('prints the same text with and without colours', async () => {
    const paint = paintFor({ isTTY: true, write: () => true }, {})
    const coloured = await rendered(['FIXED_WINDOW'], 80, paint)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: ANSI colour codes start with a control character
    const stripped = coloured.map((line) => line.replaceAll(/\u001b\[\d+m/g, '').trimEnd())
    expect(stripped).toEqual(await rendered(['FIXED_WINDOW']))
    expect(coloured.join('\n')).toContain('\u001b[31m20 in 1s, limit 10')
  })
})

describe('colours', () => {
  it.each([
    [true, {}, true],
    [true, { NO_COLOR: '' }, true],
    [true, { NO_COLOR: '1' }, false],
    [false, {}, false],
  ])('on a terminal: %s, environment: %j → %s', (isTTY, environment, expected) => {
    const paint = paintFor({ isTTY, write: () => true }, environment)
    expect(paint('red', 'x') !== 'x').toBe(expected)
  })
})
