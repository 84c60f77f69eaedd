import { Command } from 'commander'
import { takeHolds } from '../../../core/algorithm-traits.js'
import { type Band, maxLogCapacity } from '../../../core/rule.js'
import { parseRule } from '../../../rules/schema/parse-rules.js'
import { recordedTraffic, simulateBands } from '../../../simulate/index.js'
import { UsageError } from '../../failure.js'
import { rateAlgorithms } from '../../options/option-values.js'
import { requestOptionNames } from '../../options/request-options.js'
import { formatDuration } from '../../output/format-duration.js'
import { paintFor, print, printData, widthOf } from '../../output/output.js'
import { type SimulateOptions, withSimulateOptions } from './options.js'
import { recordingLines } from './recording-file.js'
import { recordingNotes, renderSimulation, simulationDocument } from './report.js'
import { simulateRuleSet } from './rule-set.js'
import { needServiceTime, serviceTimeOf, withDurations } from './service-time.js'
import { syntheticTraffic } from './traffic.js'

const examples = `
Examples:
  $ fluxgate simulate
      send bursts across a window boundary: FIXED_WINDOW allows twice its limit, sliding windows do not
  $ fluxgate simulate --algorithm token-bucket,leaky-bucket --traffic uniform --rate 11 --duration 100s
      send 11 requests per second against a limit of 10 per second
  $ fluxgate simulate --capacity 1000 --traffic poisson --rate 900 --duration 1m --seed 7 --json
      print reproducible results as JSON
  $ fluxgate simulate --algorithm concurrency --rate 50 --service-time 300ms --service-distribution exponential
      send 50 requests per second of 300 ms each against a limit of 10 requests in progress
  $ fluxgate simulate --from access.log --capacity 100 --window 1m
      replay recorded traffic against a limit you are considering
  $ fluxgate simulate --from access.log --rules rules.yaml
      replay recorded traffic against your rules and count the rejections of each rule
  $ fluxgate simulate --rules rules.yaml --ip 203.0.113.7 --method POST --path /login --traffic poisson --rate 2
      simulate one client against your rules
`

export function simulateCommand(): Command {
  const command = new Command('simulate')
    .description('Simulate algorithms or rules against synthetic or recorded traffic.')
    .addHelpText('after', examples)
  return withSimulateOptions(command).action(simulate)
}

async function simulate(options: SimulateOptions): Promise<void> {
  if (options.every === 0 || options.duration === 0)
    throw new UsageError('--every and --duration must be greater than 0.')
  if (options.from === undefined && (options.durationField ?? options.costField) !== undefined)
    throw new UsageError('--duration-field and --cost-field need --from <file>.')
  if (options.rules !== undefined) return simulateRuleSet({ ...options, rules: options.rules })
  if (options.ruleSet !== undefined) throw new UsageError('--rule-set needs --rules <file>.')
  if (requestOptionNames.some((name) => options[name] !== undefined))
    throw new UsageError('Options that describe a request, such as --path, need --rules <file>.')
  if ([options.permits, options.cost, options.costField].some((value) => value !== undefined))
    throw new UsageError('--permits, --cost and --cost-field need --rules <file>.')
  await simulateAlgorithms(options, bandsOf(options))
}

async function simulateAlgorithms(options: SimulateOptions, bands: readonly Band[]): Promise<void> {
  const { from, window, json, durationField, startAt = 0 } = options
  const serviceTime = serviceTimeOf(options)
  const paint = paintFor(process.stdout)
  const width = widthOf(process.stdout)
  const limit = paint('bold', limitText(options, bands))
  if (from === undefined) {
    if (takeHolds(bands) && serviceTime === undefined) throw needServiceTime('CONCURRENCY')
    const { description, arrivals, until } = syntheticTraffic(options, options.capacity, window)
    const simulation = await simulateBands(bands, arrivals, { startAt, until, window, serviceTime })
    if (json) return printData({ traffic: description, ...simulationDocument(simulation) })
    const title = `${limit} · ${description} · ${formatDuration((until - startAt) / 1000)}`
    return print([title, '', ...renderSimulation(simulation, width, paint)].join('\n'))
  }
  const { arrivals, report } = recordedTraffic(await recordingLines(from), from, { durationField })
  const needsDurations = takeHolds(bands) && serviceTime === undefined
  const checked = needsDurations ? withDurations(arrivals, 'CONCURRENCY') : arrivals
  const simulation = await simulateBands(bands, checked, { window, serviceTime })
  if (json) return printData({ traffic: from, recording: report, ...simulationDocument(simulation) })
  const notes = recordingNotes(from, report, simulation.startAtMs)
  const title = `${limit} · ${notes[0]}`
  print([title, ...notes.slice(1), '', ...renderSimulation(simulation, width, paint)].join('\n'))
}

/** Describes the limit, such as `10 per 1s`. */
function limitText({ capacity, window }: SimulateOptions, bands: readonly Band[]): string {
  const rate = `${capacity} per ${formatDuration(window / 1000)}`
  if (!takeHolds(bands)) return rate
  return bands.length === 1 ? `${capacity} in progress` : `${rate}, or ${capacity} in progress`
}

/** Parsed as rules, so that the simulation accepts exactly the bands that rules accept. */
function bandsOf({ algorithm, capacity, window, refillTokens, refill }: SimulateOptions): readonly Band[] {
  // Without --algorithm all algorithms are compared, except one that does not support the capacity.
  const fitting = rateAlgorithms.filter((name) => name !== 'SLIDING_WINDOW_LOG' || capacity <= maxLogCapacity)
  return (algorithm ?? fitting).map((name) => {
    const isInterval = refill === 'interval' && name === 'TOKEN_BUCKET'
    const limit =
      name === 'CONCURRENCY'
        ? { capacity, maxHold: longestHold }
        : {
            capacity,
            refillTokens: refillTokens ?? capacity,
            windowMs: window / 1_000,
            refill: isInterval ? 'INTERVAL' : 'STEADY',
          }
    const rule = { id: 'simulate', bands: [{ label: name, algorithm: name, ...limit }] }
    return parseRule(rule).bands[0] as Band
  })
}

/** Simulated requests are renewed for as long as they take. */
const longestHold = '366d'
