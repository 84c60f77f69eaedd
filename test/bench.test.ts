/** The benchmark completes on any machine; its figures are not checked here. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { drawChart } from '../bench/growth/chart.mjs'
import { withFigures } from '../bench/results/readme.mjs'
import { merge, verdicts } from '../bench/results/report.mjs'
import { withResults } from '../bench/results/results-file.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const resultsFile = join(root, 'bench/RESULTS.md')
const readResults = () => (existsSync(resultsFile) ? readFileSync(resultsFile, 'utf8') : undefined)

function run(args: readonly string[]): Promise<{ status: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      args,
      { cwd: root, env: { ...process.env, NODE_OPTIONS: '' } },
      (error, stdout, stderr) => resolve({ status: error ? Number(error.code ?? 1) : 0, stdout, stderr }),
    )
  })
}

beforeAll(async () => {
  expect(await run(['scripts/bootstrap.mjs', 'redis'])).toMatchObject({ status: 0 })
})

describe('npm run bench', () => {
  it('measures every section and every target with --quick, without changing RESULTS.md', async () => {
    const before = readResults()
    const { status, stdout, stderr } = await run(['--expose-gc', 'bench/run.mjs', '--quick'])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const titles = [...stdout.matchAll(/^## (.+)$/gm)].map((match) => match[1])
    expect(titles).toEqual([
      'Single band',
      'Rules',
      'Matching',
      'Memory',
      'Algorithms',
      'Redis',
      'Leases',
      'Bulk',
      'Lock',
      'Search index',
      'Frameworks',
      'Gateway',
      'Server',
      'Services',
      'Rule sets',
      'Replay',
      'Faults',
      'Targets',
    ])
    expect(stdout).not.toMatch(/NaN|undefined|Infinity/)
    // The target against envoyproxy/ratelimit exists only where that is installed.
    const targets = [...stdout.matchAll(/^\| (.+) \| +(?:met|not met) \|$/gm)].filter(
      ([, line]) => !line?.includes('envoy'),
    )
    expect(targets).toHaveLength(65)
    expect(readResults()).toBe(before)
  }, 900_000)

  const findings = (title: string, measured: number) => ({
    title,
    note: 'One key.',
    tables: [],
    figures: [
      {
        title: 'Speed',
        head: ['contender', 'ops/s'],
        lines: [['FluxGate', { value: measured, digits: 1, spread: true }]],
      },
    ],
    ratios: [{ what: 'times as fast', measured, atLeast: 2 }],
  })

  it('keeps the earlier results of sections that are not measured again', () => {
    const [memory, redis, later] = [findings('Memory', 1), findings('Redis', 1), findings('Memory', 3)].map((run) =>
      merge([run]),
    )
    if (!memory || !redis || !later) throw new Error('unreachable')
    const first = withResults('', [memory, redis], 'Measured on Monday.')
    const second = withResults(first, [{ ...later, minutes: 1.25 }], 'Measured on Tuesday.')
    expect(second.match(/^Measured on .+$/gm)).toEqual([
      'Measured on Tuesday. 1 runs in 1.3 minutes.',
      'Measured on Monday.',
    ])
    expect(second.match(/^\| FluxGate .+$/gm)).toEqual(['| FluxGate  |   3.0 |', '| FluxGate  |   1.0 |'])
    expect(second.match(/^\| .+ met \|$/gm)).toEqual([
      '| Memory  | times as fast |   3.00 | 3.00–3.00 |    1 |    ≥ 2 |     met |',
      '| Redis   | times as fast |   1.00 | 1.00–1.00 |    1 |    ≥ 2 | not met |',
    ])
    expect(withResults(second, [], '')).toBe(second)
  })

  it('shows the median and the quartiles of all runs', () => {
    const merged = merge([5, 1, 4, 2, 3].map((value) => findings('Redis', value)))
    expect(withResults('', [merged], '').match(/^\| FluxGate .+$/gm)).toEqual(['| FluxGate  | 3.0 (2.0–4.0) |'])
  })

  it('counts a target as met if the less favourable quartile meets it', () => {
    const verdict = (samples: readonly number[], target: object) =>
      verdicts(
        merge(
          samples.map((measured) => ({ ...findings('Redis', measured), ratios: [{ what: '', measured, ...target }] })),
        ),
      )
        .map((cells) => cells.slice(2).join(' '))
        .join()
    expect(verdict([1, 2, 3, 3, 3], { atLeast: 2 })).toBe('3.00 2.00–3.00 5 ≥ 2 met')
    expect(verdict([1, 1.99, 3, 3, 3], { atLeast: 2 })).toBe('3.00 1.99–3.00 5 ≥ 2 not met')
    expect(verdict([9, 2, 1, 1, 1], { atMost: 2 })).toBe('1.00 1.00–2.00 5 ≤ 2 met')
    expect(verdict([9, 2.01, 1, 1, 1], { atMost: 2 })).toBe('1.00 1.00–2.01 5 ≤ 2 not met')
    expect(verdict([1, 0, 0, 0, 0], { atMost: 0 })).toBe('0.00 0.00–0.00 5 ≤ 0 met')
    expect(verdict([1, 0, 0, 0, 0], { atMost: 0, always: true })).toBe('0.00 0.00–1.00 5 ≤ 0 not met')
  })

  it('measures growth with --quick, without changing the docs', async () => {
    const { status, stdout, stderr } = await run(['--expose-gc', 'bench/run.mjs', 'growth', '--quick'])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect([...stdout.matchAll(/^## (.+)$/gm)].map((match) => match[1])).toEqual([
      'Costs within 1.5 times',
      'Keys in memory',
      'Keys in Redis',
      'Rules',
      'Bands',
      'Processes',
      'Cluster',
      'Connections at the gateway',
    ])
    expect(stdout).not.toMatch(/NaN|undefined|Infinity/)
  }, 900_000)

  it('draws a chart with one line and one spread per series', () => {
    const point = (median: number) => ({ low: median - 1, median, high: median + 1 })
    const svg = drawChart({
      title: 'Costs <b>',
      xTitle: 'keys',
      yTitle: 'µs',
      x: [1_000, 10_000_000],
      lines: [{ name: 'FluxGate & Redis', points: [point(2), point(9)] }],
    })
    expect(svg.match(/<(polyline|polygon)/g)).toEqual(['<polygon', '<polyline'])
    // The plot is 660 wide from 72 and 256 high from 84; the y axis ends at 12.
    expect(svg).toContain('<polyline class="line c0" points="72,297.3 732,148"/>')
    for (const text of ['Costs &lt;b>', 'FluxGate &amp; Redis', '>1k<', '>10M<', 'prefers-color-scheme: dark'])
      expect(svg).toContain(text)
  })

  it('README.md shows the figures of RESULTS.md', () => {
    const readme = readFileSync(join(root, 'README.md'), 'utf8')
    expect(withFigures(readme, readFileSync(resultsFile, 'utf8'))).toBe(readme)
  })

  it('rejects an unknown section and lists the known ones', async () => {
    const { status, stderr } = await run(['--expose-gc', 'bench/run.mjs', 'nothing'])
    expect(status).toBe(2)
    expect(stderr).toContain(
      'single-band, rules, matching, memory, algorithms, redis, leases, bulk, lock, search-index, frameworks, gateway, server, services',
    )
  })
})
