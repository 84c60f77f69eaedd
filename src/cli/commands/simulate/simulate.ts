import { Command, Option } from 'commander'
import { type AlgorithmName, type Band, maxCapacity, maxLogCapacity } from '../../../core/rule.js'
import { parseRule } from '../../../rules/schema/parse-rules.js'
import { recordedTraffic, simulateBands } from '../../../simulate/index.js'
import { UsageError } from '../../failure.js'
import { algorithms, duration, positiveNumber, rateAlgorithms, wholeNumber } from '../../options/option-values.js'
import { type RequestOptions, requestOptionNames, withRequestOptions } from '../../options/request-options.js'
import { ruleSetOption } from '../../options/shared-options.js'
import { formatDuration } from '../../output/format-duration.js'
import { paintFor, print, printData, widthOf } from '../../output/output.js'
import { recordingLines } from './recording-file.js'
import { recordingNotes, renderSimulation, simulationDocument } from './report.js'
import { simulateRuleSet } from './rule-set.js'
import { syntheticTraffic, type TrafficOptions } from './traffic.js'

interface SimulateOptions extends TrafficOptions, RequestOptions {
  readonly algorithm?: AlgorithmName[]
  readonly capacity: number
  readonly window: number
  readonly refillTokens?: number
  readonly refill: 'steady' | 'interval'
  readonly from?: string
  readonly rules?: string
  readonly ruleSet?: string
  readonly json?: true
}

const examples = `
Examples:
  $ fluxgate simulate
      send bursts across a window boundary: FIXED_WINDOW allows twice its limit, sliding windows do not
  $ fluxgate simulate --algorithm token-bucket,leaky-bucket --traffic uniform --rate 11 --duration 100s
      send 11 requests per second against a limit of 10 per second
  $ fluxgate simulate --capacity 1000 --traffic poisson --rate 900 --duration 1m --seed 7 --json
      print reproducible results as JSON
  $ fluxgate simulate --from access.log --capacity 100 --window 1m
      replay recorded traffic against a limit you are considering
  $ fluxgate simulate --from access.log --rules rules.yaml
      replay recorded traffic against your rules and count the rejections of each rule
  $ fluxgate simulate --rules rules.yaml --ip 203.0.113.7 --method POST --path /login --traffic poisson --rate 2
      simulate one client against your rules
`

const syntheticOptions = ['traffic', 'rate', 'burst', 'every', 'spread', 'startOffset', 'duration', 'seed']
const bandOptions = ['algorithm', 'capacity', 'window', 'refillTokens', 'refill']
const capacityValue = wholeNumber(1, maxCapacity)

export function simulateCommand(): Command {
  const command = new Command('simulate')
    .description('Simulate algorithms or rules against synthetic or recorded traffic.')
    .addHelpText('after', examples)
    .addOption(new Option('--algorithm <names>', 'comma-separated list, or all (default: all)').argParser(algorithms))
    .addOption(new Option('--capacity <n>', 'requests allowed per window').default(10).argParser(capacityValue))
    .addOption(new Option('--window <duration>', 'length of the window').default(1_000_000, '1s').argParser(duration))
    .addOption(
      new Option('--refill-tokens <n>', 'tokens added per window (default: the capacity)').argParser(capacityValue),
    )
    .addOption(new Option('--refill <how>', 'refill of TOKEN_BUCKET').choices(['steady', 'interval']).default('steady'))
    .addOption(
      new Option('--traffic <kind>', 'synthetic traffic (default: burst, or uniform with --rate)').choices([
        'uniform',
        'poisson',
        'burst',
      ]),
    )
    .addOption(new Option('--rate <n>', 'uniform, poisson: requests per second').argParser(positiveNumber(1e7)))
    .addOption(new Option('--burst <n>', 'burst: requests per burst').argParser(capacityValue))
    .addOption(new Option('--every <duration>', 'burst: interval between bursts').argParser(duration))
    .addOption(new Option('--spread <duration>', 'burst: duration of each burst').argParser(duration))
    .addOption(new Option('--start-offset <duration>', 'time of the first request').argParser(duration))
    .addOption(new Option('--duration <duration>', 'simulated time (default: six windows)').argParser(duration))
    .addOption(new Option('--seed <n>', 'poisson: random seed').default(1).argParser(wholeNumber(0, 2 ** 32 - 1)))
    .addOption(
      new Option(
        '--from <file>',
        'replay recorded traffic: access log, JSON lines, CSV or timestamps; - for standard input',
      ).conflicts([...syntheticOptions, ...requestOptionNames]),
    )
    .addOption(new Option('--rules <file>', 'simulate this rules file instead of algorithms').conflicts(bandOptions))
    .addOption(ruleSetOption())
  return withRequestOptions(command)
    .addOption(new Option('--json', 'print the result as one JSON document'))
    .action(simulate)
}

async function simulate(options: SimulateOptions): Promise<void> {
  if (options.every === 0 || options.duration === 0)
    throw new UsageError('--every and --duration must be greater than 0.')
  if (options.rules !== undefined) return simulateRuleSet({ ...options, rules: options.rules })
  if (options.ruleSet !== undefined) throw new UsageError('--rule-set needs --rules <file>.')
  if (requestOptionNames.some((name) => options[name] !== undefined))
    throw new UsageError('Options that describe a request, such as --path, need --rules <file>.')
  const bands = bandsOf(options)
  const paint = paintFor(process.stdout)
  const limit = `${options.capacity} per ${formatDuration(options.window / 1000)}`
  if (options.from === undefined) {
    const { description, arrivals, until } = syntheticTraffic(options, options.capacity, options.window)
    const simulation = await simulateBands(bands, arrivals, { startAt: 0, until })
    if (options.json) return printData({ traffic: description, ...simulationDocument(simulation) })
    const title = `${paint('bold', limit)} · ${description} · ${formatDuration(until / 1000)}`
    return print([title, '', ...renderSimulation(simulation, widthOf(process.stdout), paint)].join('\n'))
  }
  const { arrivals, report } = recordedTraffic(await recordingLines(options.from), options.from)
  const simulation = await simulateBands(bands, arrivals)
  if (options.json) return printData({ traffic: options.from, recording: report, ...simulationDocument(simulation) })
  const notes = recordingNotes(options.from, report, simulation.startAtMs)
  const title = `${paint('bold', limit)} · ${notes[0]}`
  print([title, ...notes.slice(1), '', ...renderSimulation(simulation, widthOf(process.stdout), paint)].join('\n'))
}

/** Parsed as rules, so that the simulation accepts exactly the bands that rules accept. */
function bandsOf({ algorithm, capacity, window, refillTokens, refill }: SimulateOptions): readonly Band[] {
  // Without --algorithm all algorithms are compared, except one that does not support the capacity.
  const fitting = rateAlgorithms.filter((name) => name !== 'SLIDING_WINDOW_LOG' || capacity <= maxLogCapacity)
  return (algorithm ?? fitting).map((name) => {
    const isInterval = refill === 'interval' && name === 'TOKEN_BUCKET'
    const band = {
      label: name,
      algorithm: name,
      capacity,
      refillTokens: refillTokens ?? capacity,
      windowMs: window / 1_000,
      refill: isInterval ? 'INTERVAL' : 'STEADY',
    }
    return parseRule({ id: 'simulate', bands: [band] }).bands[0] as Band
  })
}
