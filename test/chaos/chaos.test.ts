/** A short run of every topology; `npm run chaos` runs more and longer ones. */
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { Bed, type BedOptions } from './bed.js'
import { describe as describeRun } from './report.js'
import { type RunResult, runSeed } from './run.js'
import { startTopology, type TopologyName, topologyNames } from './topologies.js'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const seed = Number(process.env.FLUXGATE_CHAOS_SEED ?? 1 + Math.floor(Math.random() * 1e6))
const longestMs = 240_000

async function runOnce(name: TopologyName, faultMs: number, more: Partial<BedOptions> = {}): Promise<RunResult> {
  const topology = await startTopology(name)
  try {
    const bed = await Bed.start({ root, topology, ...more })
    try {
      return await runSeed({ bed, topology, seed, faultMs })
    } finally {
      await bed.stop()
    }
  } finally {
    await topology.stop()
  }
}

describe(`chaos with FLUXGATE_CHAOS_SEED=${seed}`, () => {
  it.each(topologyNames)('finds no violation with a %s Redis', { timeout: longestMs }, async (name) => {
    const result = await runOnce(name, 2_000)
    expect(result.history.entries.length).toBeGreaterThan(0)
    expect(result.violations.length, describeRun(result)).toBe(0)
  })

  it('reports processes that do not share their buckets', { timeout: longestMs }, async () => {
    const { violations } = await runOnce('standalone', 0, { breaks: true, only: ['library-1', 'library-2'] })
    expect(violations.map(({ kind }) => kind)).toContain('over-admission')
  })
})

describe('npm run chaos', () => {
  const chaos = (...args: string[]) =>
    spawnSync(process.execPath, [join(root, 'scripts', 'chaos.mjs'), ...args], { encoding: 'utf8' })

  it('explains its options', () => {
    expect(chaos('--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('--topology <name>') })
  })

  it.each([
    ['--seeds', '0', '--seeds must be a positive integer; received "0".'],
    ['--topology', 'ring', '--topology must be standalone, sentinel, cluster or all; received "ring".'],
  ])('rejects %s %s', (name, value, message) => {
    expect(chaos(name, value)).toMatchObject({ status: 2, stderr: expect.stringContaining(message) })
  })
})
