/** The command behind `npm run batteries`. */
import { type RunOptions, runCommand, UsageError } from '../fixtures/run-options.js'
import { FrameworkBed } from './frameworks/framework-batteries.js'
import type { Violation } from './journal.js'
import { GatewayBed, gatewayBatteries, launchGateway } from './run.js'

const frameworks = 'frameworks'
const names = [...Object.keys(gatewayBatteries), frameworks]

const help = `Usage: npm run batteries -- [options]

Sends generated traffic through FluxGate and checks both sides with an independent HTTP parser.

  --seed <n>       the first seed (default: random)
  --seeds <n>      number of seeds per battery (default 10)
  --only <names>   batteries, separated by commas: ${names.join(', ')}
  --minutes <n>    start no further seed after this much time
  --help

FLUXGATE_BATTERIES_DEADLINE_MS is how long a connection may stay silent (default 120000).
Exit status: 0 no violation, 1 violations, 2 invalid options.`

interface Options {
  readonly seed: number
  readonly seeds: number
  readonly only: readonly string[]
  readonly endMs: number
}

function read(options: RunOptions): Options {
  const only = options.text('only')?.split(',') ?? names
  for (const name of only)
    if (!names.includes(name)) throw new UsageError(`--only must name ${names.join(', ')}; received "${name}".`)
  return {
    seed: options.seed(),
    seeds: options.integer('seeds', 10, 1),
    only,
    endMs: performance.now() + options.positive('minutes', Number.POSITIVE_INFINITY) * 60_000,
  }
}

export const describe = (name: string, seed: number, violations: readonly Violation[]): string =>
  [
    ...violations.map(({ kind, detail }) => `  ${kind}: ${detail}`),
    `  Replay: npm run batteries -- --only ${name} --seed ${seed} --seeds 1`,
  ].join('\n')

async function run({ seed, seeds, only, endMs }: Options, root: string): Promise<number> {
  let failures = 0
  let total = 0
  const bed = await GatewayBed.start(launchGateway(root))
  const frameworkBed = new FrameworkBed(root)
  try {
    for (const name of only) {
      let [done, failed, connections, arrived] = [0, 0, 0, 0]
      for (; done < seeds && performance.now() < endMs; done++) {
        if (process.stderr.isTTY) process.stderr.write(`${name} ${done + 1} of ${seeds} \r`)
        const result = await (name === frameworks ? frameworkBed : bed).run(name, seed + done)
        connections += result.connections
        arrived += result.arrived
        if (result.violations.length === 0) continue
        failed += 1
        console.log(`${name} seed ${seed + done}:\n${describe(name, seed + done, result.violations)}`)
      }
      total += done
      failures += failed
      const counts = `${connections} connections, ${arrived} requests processed`
      console.log(`${name}: ${done} seeds from ${seed}, ${counts}, ${failed} with violations`)
    }
  } finally {
    await bed.stop()
    await frameworkBed.stop()
  }
  console.log(`${total} seeds, ${failures} with violations`)
  return failures === 0 ? 0 : 1
}

/** Returns the exit status. */
export const main = (args: readonly string[], root: string): Promise<number> =>
  runCommand(args, {
    help,
    options: ['seed', 'seeds', 'only', 'minutes'],
    prepare: (given) => {
      const options = read(given)
      return () => run(options, root)
    },
  })
