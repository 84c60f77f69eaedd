/** The benchmark completes on any machine; its figures are not checked here. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'
import { withFindings } from '../bench/results-file.mjs'

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
      'Bulk',
      'Lock',
      'Search index',
      'Frameworks',
      'Gateway',
      'Server',
      'Rule sets',
      'Faults',
      'Targets',
    ])
    expect(stdout).not.toMatch(/NaN|undefined|Infinity/)
    expect(stdout.match(/\| +(met|not met) \|$/gm)).toHaveLength(52)
    expect(readResults()).toBe(before)
  }, 900_000)

  it('keeps the earlier results of sections that are not measured again', () => {
    const findings = (title: string, measured: number) => ({
      title,
      note: 'One key.',
      tables: [],
      figures: [{ title: 'Speed', head: ['contender', 'ops/s'], lines: [['FluxGate', String(measured)]] }],
      ratios: [{ what: 'times as fast', measured, atLeast: 2 }],
    })
    const first = withFindings('', [findings('Memory', 1), findings('Redis', 1)], 'Measured on Monday.')
    const second = withFindings(first, [findings('Memory', 3)], 'Measured on Tuesday.')
    expect(second.match(/^Measured on .+$/gm)).toEqual(['Measured on Tuesday.', 'Measured on Monday.'])
    expect(second.match(/^\| FluxGate .+$/gm)).toEqual(['| FluxGate  |     3 |', '| FluxGate  |     1 |'])
    expect(second.match(/^\| .+ met \|$/gm)).toEqual([
      '| Memory  | times as fast |     3.00 |    ≥ 2 |     met |',
      '| Redis   | times as fast |     1.00 |    ≥ 2 | not met |',
    ])
    expect(withFindings(second, [], '')).toBe(second)
  })

  it('rejects an unknown section and lists the known ones', async () => {
    const { status, stderr } = await run(['--expose-gc', 'bench/run.mjs', 'nothing'])
    expect(status).toBe(2)
    expect(stderr).toContain(
      'single-band, rules, matching, memory, algorithms, redis, bulk, lock, search-index, frameworks, gateway, server',
    )
  })
})
