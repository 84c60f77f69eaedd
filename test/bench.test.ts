/** The bench runs to its end on any machine; what it measures is not judged here. */
import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it } from 'vitest'

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
  expect(await run(['scripts/bootstrap.mjs'])).toMatchObject({ status: 0 })
})

describe('npm run bench', () => {
  it('gives a quick look at every section and every demand, and leaves the written results alone', async () => {
    const before = readResults()
    const { status, stdout, stderr } = await run(['--expose-gc', 'bench/run.mjs', '--quick'])
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const titles = [...stdout.matchAll(/^## (.+)$/gm)].map((match) => match[1])
    expect(titles).toEqual(['Single band', 'Rules', 'Matching', 'Memory', 'Algorithms', 'Demands'])
    expect(stdout).not.toMatch(/NaN|undefined|Infinity/)
    expect(stdout.match(/\| +(met|not met) \|$/gm)).toHaveLength(9)
    expect(readResults()).toBe(before)
  }, 60_000)

  it('refuses a section that does not exist and names those that do', async () => {
    const { status, stderr } = await run(['--expose-gc', 'bench/run.mjs', '--only', 'nothing'])
    expect(status).toBe(2)
    expect(stderr).toContain('single-band, rules, matching, memory, algorithms')
  })
})
