import { Command, Option } from 'commander'
import { type AlgorithmName, algorithmNames, type Band, maxCapacity, maxLogCapacity } from '../../../core/rule.js'
import { parseRule } from '../../../rules/schema/schema.js'
import { recordedTraffic, simulateBands } from '../../../simulate/index.js'
import { UsageError } from '../../failure.js'
import { algorithms, duration, positiveNumber, wholeNumber } from '../../options/option-values.js'
import { type RequestOptions, requestOptionNames, withRequestOptions } from '../../options/request-options.js'
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
      bursts across the edge of a window: FIXED_WINDOW lets twice its limit pass, the sliding ones do not
  $ fluxgate simulate --algorithm token-bucket,leaky-bucket --traffic uniform --rate 11 --duration 100s
      what 11 requests a second get out of 10 a second
  $ fluxgate simulate --capacity 1000 --traffic poisson --rate 900 --duration 1m --seed 7 --json
      the same numbers on every machine, for programs
  $ fluxgate simulate --from access.log --capacity 100 --window 1m
      yesterday's traffic against a limit you are considering
  $ fluxgate simulate --from access.log --rules rules.yaml
      yesterday's traffic against your rules: which of them would have refused how much
  $ fluxgate simulate --rules rules.yaml --ip 203.0.113.7 --method POST --path /login --traffic poisson --rate 2
      one caller against your rules
`

const syntheticOptions = ['traffic', 'rate', 'burst', 'every', 'spread', 'startOffset', 'duration', 'seed']
const bandOptions = ['algorithm', 'capacity', 'window', 'refillTokens', 'refill']
const whole = wholeNumber(1, maxCapacity)

export function simulateCommand(): Command {
  const command = new Command('simulate')
    .description('Try algorithms, or a rule set, against synthetic or recorded traffic, in no time at all.')
    .addHelpText('after', examples)
    .addOption(new Option('--algorithm <names>', 'one or several, separated by commas, or all').argParser(algorithms))
    .addOption(new Option('--capacity <n>', 'the limit: how many pass').default(10).argParser(whole))
    .addOption(new Option('--window <duration>', 'in how long').default(1_000_000, '1s').argParser(duration))
    .addOption(new Option('--refill-tokens <n>', 'what each window adds, if not the capacity').argParser(whole))
    .addOption(new Option('--refill <how>', 'TOKEN_BUCKET only').choices(['steady', 'interval']).default('steady'))
    .addOption(new Option('--traffic <kind>', 'what arrives').choices(['uniform', 'poisson', 'burst']))
    .addOption(new Option('--rate <n>', 'uniform, poisson: requests a second').argParser(positiveNumber(1e7)))
    .addOption(new Option('--burst <n>', 'burst: requests in each').argParser(whole))
    .addOption(new Option('--every <duration>', 'burst: from one to the next').argParser(duration))
    .addOption(new Option('--spread <duration>', 'burst: how long each takes').argParser(duration))
    .addOption(new Option('--start-offset <duration>', 'when the traffic begins').argParser(duration))
    .addOption(new Option('--duration <duration>', 'how long it lasts; six windows by default').argParser(duration))
    .addOption(new Option('--seed <n>', 'poisson: which of all runs').default(1).argParser(wholeNumber(0, 2 ** 32 - 1)))
    .addOption(
      new Option(
        '--from <file>',
        'recorded traffic instead: access log, JSON lines, CSV or timestamps; - is standard input',
      ).conflicts([...syntheticOptions, ...requestOptionNames]),
    )
    .addOption(new Option('--rules <file>', 'a rule set instead of algorithms').conflicts(bandOptions))
    .addOption(new Option('--rule-set <id>', 'which set of the rules, if there are several'))
  return withRequestOptions(command)
    .addOption(new Option('--json', 'print everything as one JSON document'))
    .action(simulate)
}

async function simulate(options: SimulateOptions): Promise<void> {
  if (options.every === 0 || options.duration === 0)
    throw new UsageError('--every and --duration must be longer than nothing.')
  if (options.rules !== undefined) return simulateRuleSet({ ...options, rules: options.rules })
  if (options.ruleSet !== undefined) throw new UsageError('--rule-set needs --rules <file>.')
  if (requestOptionNames.some((name) => options[name] !== undefined))
    throw new UsageError('A request needs rules that look at it: add --rules <file>.')
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

/** Checked as rules are, so that the same limits are legal here and there. */
function bandsOf({ algorithm, capacity, window, refillTokens, refill }: SimulateOptions): readonly Band[] {
  // Those who name no algorithm want to compare; one that cannot take part is left out.
  const fitting = algorithmNames.filter((name) => name !== 'SLIDING_WINDOW_LOG' || capacity <= maxLogCapacity)
  return (algorithm ?? fitting).map((name) => {
    const isInterval = refill === 'interval' && name === 'TOKEN_BUCKET'
    const band = {
      label: name,
      algorithm: name,
      capacity,
      refillTokens: refillTokens ?? capacity,
      window: window / 1e6,
      refill: isInterval ? 'INTERVAL' : 'STEADY',
    }
    return parseRule({ id: 'simulate', bands: [band] }).bands[0] as Band
  })
}
