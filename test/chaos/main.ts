/** The command behind `npm run chaos`. */
import { writeFileSync } from 'node:fs'
import { type RunOptions, runCommand, UsageError } from '../fixtures/run-options.js'
import { Bed } from './bed.js'
import { describe, summary } from './report.js'
import { type RunResult, runSeed } from './run.js'
import { startTopology, type TopologyName, topologyNames } from './topologies/index.js'
import type { Topology } from './topologies/topology.js'

const help = `Usage: npm run chaos -- [options]

Runs the library, the server, the gateway and HttpHandler against Redis while faults happen, and checks every decision.

  --topology <name>  standalone, sentinel, cluster or all (default all)
  --seed <n>         the first seed (default: random)
  --seeds <n>        number of seeds per topology (default 1)
  --seconds <n>      how long faults are started for in each seed (default 4)
  --minutes <n>      run further seeds until this much time has passed
  --json <file>      write a report
  --break            negative control: some processes do not share their buckets, which must be reported
  --help

Exit status: 0 no violation, 1 violations, 2 invalid options.`

interface Options {
  readonly names: readonly TopologyName[]
  readonly seed: number
  readonly seeds: number
  readonly faultMs: number
  /** Infinite if the number of seeds says when to end. */
  readonly minutes: number
  readonly json: string | undefined
  readonly breaks: boolean
}

function read(options: RunOptions): Options {
  const topology = options.text('topology') ?? 'all'
  const names = topology === 'all' ? topologyNames : topologyNames.filter((name) => name === topology)
  if (names.length === 0)
    throw new UsageError(`--topology must be ${topologyNames.join(', ')} or all; received "${topology}".`)
  return {
    names,
    seed: options.seed(),
    seeds: options.integer('seeds', options.has('minutes') ? Number.MAX_SAFE_INTEGER : 1, 1),
    faultMs: options.positive('seconds', 4) * 1_000,
    minutes: options.positive('minutes', Number.POSITIVE_INFINITY),
    json: options.text('json'),
    breaks: options.has('break'),
  }
}

/** Servers and processes of one topology, which serve many seeds. */
class Session {
  readonly #start: () => Promise<{ topology: Topology; bed: Bed }>
  #current: { topology: Topology; bed: Bed } | undefined

  constructor(start: () => Promise<{ topology: Topology; bed: Bed }>) {
    this.#start = start
  }

  /** A run that could not be completed says nothing about FluxGate; it is repeated once, with everything started again. */
  async run(seed: number, faultMs: number): Promise<RunResult> {
    try {
      return await this.#attempt(seed, faultMs)
    } catch (error) {
      console.error(`Seed ${seed} could not be completed and is repeated: ${String(error)}`)
      await this.stop()
      return await this.#attempt(seed, faultMs)
    }
  }

  async stop(): Promise<void> {
    const current = this.#current
    this.#current = undefined
    await current?.bed.stop()
    await current?.topology.stop()
  }

  async #attempt(seed: number, faultMs: number): Promise<RunResult> {
    this.#current ??= await this.#start()
    return await runSeed({ ...this.#current, seed, faultMs })
  }
}

/** Runs all seeds; with a time limit, each topology has its share. */
async function run(options: Options, root: string): Promise<RunResult[]> {
  const { names, seed, seeds, faultMs, minutes, breaks } = options
  const results: RunResult[] = []
  for (const name of names) {
    const endMs = performance.now() + (minutes * 60_000) / names.length
    const session = new Session(async () => {
      const topology = await startTopology(name)
      return { topology, bed: await Bed.start({ root, topology, breaks }) }
    })
    try {
      for (let count = 0; count < seeds && performance.now() < endMs; count++) {
        if (process.stderr.isTTY) process.stderr.write(`${name} seed ${seed + count} …\r`)
        const startedMs = performance.now()
        const result = await session.run(seed + count, faultMs)
        results.push(result)
        const tookS = ((performance.now() - startedMs) / 1_000).toFixed(1)
        console.log(`${name} seed ${seed + count}: ${summary(result)} (${tookS} s)`)
        if (result.violations.length > 0) console.log(describe(result))
      }
    } finally {
      await session.stop()
    }
  }
  return results
}

/** Runs all seeds and returns the exit status. */
async function runAll(options: Options, root: string): Promise<number> {
  const results = await run(options, root)
  if (options.json !== undefined) {
    const report = results.map(({ history, ...rest }) => ({
      ...rest,
      requests: history.entries.length,
      degraded: history.entries.filter(({ degraded }) => degraded).length,
      incidents: history.incidents,
    }))
    writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`)
  }
  const violations = results.reduce((sum, result) => sum + result.violations.length, 0)
  console.log(`${results.length} runs, ${violations} violations`)
  return violations === 0 ? 0 : 1
}

/** Returns the exit status. */
export const main = (args: readonly string[], root: string): Promise<number> =>
  runCommand(args, {
    help,
    options: ['topology', 'seed', 'seeds', 'seconds', 'minutes', 'json'],
    flags: ['break'],
    prepare: (given) => {
      const options = read(given)
      return () => runAll(options, root)
    },
  })
