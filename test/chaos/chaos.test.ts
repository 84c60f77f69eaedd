/** A short run of every topology; `npm run chaos` runs more and longer ones. */
import { spawnSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { Bed, type BedOptions } from './bed.js'
import { describe as describeRun } from './report.js'
import { type RunResult, runSeed } from './run.js'
import { startTopology, type TopologyName, topologyNames } from './topologies/index.js'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const seed = Number(process.env.FLUXGATE_CHAOS_SEED ?? 1 + Math.floor(Math.random() * 1e6))
const longestMs = 240_000
/** Maximum number of runs of the negative control. */
const mostRuns = 30

type Run = (seed: number, faultMs: number) => Promise<RunResult>

async function withBed<T>(name: TopologyName, more: Partial<BedOptions>, use: (run: Run) => Promise<T>): Promise<T> {
  const topology = await startTopology(name)
  try {
    const bed = await Bed.start({ root, topology, ...more })
    try {
      return await use((seed, faultMs) => runSeed({ bed, topology, seed, faultMs }))
    } finally {
      await bed.stop()
    }
  } finally {
    await topology.stop()
  }
}

describe(`chaos with FLUXGATE_CHAOS_SEED=${seed}`, () => {
  it.each(topologyNames)('finds no violation with a %s Redis', { timeout: longestMs }, async (name) => {
    const result = await withBed(name, {}, (run) => run(seed, 2_000))
    expect(result.history.entries.length).toBeGreaterThan(0)
    expect(result.violations.length, describeRun(result)).toBe(0)
  })

  it('reports processes that do not share their buckets', { timeout: longestMs }, async () => {
    const only = ['library-1', 'library-2']
    await withBed('standalone', { breaks: true, only }, async (run) => {
      // Processes that get too little CPU make fewer requests than the limits allow, so a run may have nothing to report.
      for (let next = seed; next < seed + mostRuns; next++) {
        const { violations } = await run(next, 0)
        if (violations.some(({ kind }) => kind === 'over-admission')) return
      }
      expect.fail(`no over-admission was reported in ${mostRuns} runs`)
    })
  })
})

describe('npm run chaos', () => {
  const chaos = (...args: string[]) =>
    spawnSync(process.execPath, [join(root, 'scripts', 'chaos.mjs'), ...args], { encoding: 'utf8' })

  it('explains its options', () => {
    expect(chaos('--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('--topology <name>') })
  })

  it.each([
    ['--seeds', '0', '--seeds must be an integer of at least 1; received "0".'],
    ['--seconds', '', '--seconds must be a positive number; received "".'],
    ['--topology', 'ring', '--topology must be standalone, sentinel, cluster or all; received "ring".'],
  ])('rejects %s %s', (name, value, message) => {
    expect(chaos(name, value)).toMatchObject({ status: 2, stderr: expect.stringContaining(message) })
  })
})
