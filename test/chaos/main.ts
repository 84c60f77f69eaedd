/** The command behind `npm run chaos`. */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { Bed } from './bed.js'
import { describe, summary } from './report.js'
import { type RunResult, runSeed } from './run.js'
import { startTopology, type TopologyName, topologyNames } from './topologies.js'
import type { Topology } from './topology.js'

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

class UsageError extends Error {}

function readOptions(args: readonly string[]): Options | 'help' {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  let values: Record<string, string | boolean | undefined>
  try {
    const options = { topology: text, seed: text, seeds: text, seconds: text, minutes: text, json: text }
    values = parseArgs({ args: [...args], options: { ...options, break: flag, help: flag } }).values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
  if (values.help) return 'help'
  const number = (name: string, otherwise: number, isWhole: boolean): number => {
    const given = values[name]
    const value = given === undefined ? otherwise : Number(given)
    if (given === '' || !(value > 0 || (name === 'seed' && value === 0)) || (isWhole && !Number.isSafeInteger(value)))
      throw new UsageError(`--${name} must be a positive ${isWhole ? 'integer' : 'number'}; received "${given}".`)
    return value
  }
  const names = topologyNames
  const topology = values.topology ?? 'all'
  const chosen = topology === 'all' ? names : names.filter((name) => name === topology)
  if (chosen.length === 0)
    throw new UsageError(`--topology must be ${names.join(', ')} or all; received "${String(topology)}".`)
  return {
    names: chosen,
    seed: number('seed', 1 + Math.floor(Math.random() * 1e6), true),
    seeds: number('seeds', values.minutes === undefined ? 1 : Number.MAX_SAFE_INTEGER, true),
    faultMs: number('seconds', 4, false) * 1_000,
    minutes: number('minutes', Number.POSITIVE_INFINITY, false),
    json: typeof values.json === 'string' ? values.json : undefined,
    breaks: values.break === true,
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

/** Returns the exit status. */
export async function main(args: readonly string[], root: string): Promise<number> {
  let options: Options | 'help'
  try {
    options = readOptions(args)
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    console.error(`${error.message}\n\n${help}`)
    return 2
  }
  if (options === 'help') {
    console.log(help)
    return 0
  }
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
