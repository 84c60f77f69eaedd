/** The options of `simulate`. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { type AlgorithmName, type Costs, maxCapacity } from '../../../core/rule.js'
import { distributions } from '../../../simulate/index.js'
import { type DurationUnit, durationUnits } from '../../../simulate/recorded/fields.js'
import { parseTimestamp } from '../../../simulate/recorded/timestamp.js'
import { algorithms, costs, duration, pairs, positiveNumber, wholeNumber } from '../../options/option-values.js'
import { type RequestOptions, requestOptionNames, withRequestOptions } from '../../options/request-options.js'
import { ruleSetOption } from '../../options/shared-options.js'
import type { TrafficOptions } from './traffic.js'

export interface SimulateOptions extends TrafficOptions, RequestOptions {
  readonly algorithm?: AlgorithmName[]
  readonly capacity: number
  readonly window: number
  readonly refillTokens?: number
  readonly refill: 'steady' | 'interval'
  readonly from?: string
  readonly durationField?: { readonly name: string; readonly unit: DurationUnit }
  readonly rules?: string
  readonly ruleSet?: string
  readonly permits?: number
  readonly cost?: Costs
  readonly costField?: Record<string, string>
  readonly json?: true
}

const syntheticOptions = [
  'traffic',
  'rate',
  'burst',
  'every',
  'spread',
  'startAt',
  'startOffset',
  'duration',
  ...requestOptionNames,
]
const bandOptions = ['algorithm', 'capacity', 'window', 'refillTokens', 'refill']
const capacityValue = wholeNumber(1, maxCapacity)

export function withSimulateOptions(command: Command): Command {
  withTrafficOptions(withBandOptions(command))
    .addOption(
      new Option(
        '--service-time <duration>',
        'mean time that a request takes, for CONCURRENCY (default: as recorded)',
      ).argParser(duration),
    )
    .addOption(
      new Option('--service-distribution <kind>', 'distribution of these times')
        .choices([...distributions])
        .default('fixed'),
    )
    .addOption(
      new Option(
        '--from <file>',
        'replay recorded traffic: access log, JSON lines, CSV or timestamps; - for standard input',
      ).conflicts(syntheticOptions),
    )
    .addOption(
      new Option('--duration-field <name=unit>', 'field with the duration of a request, in ns, us, ms or s').argParser(
        durationField,
      ),
    )
    .addOption(new Option('--rules <file>', 'simulate this rules file instead of algorithms').conflicts(bandOptions))
    .addOption(ruleSetOption())
  return withRequestOptions(command)
    .addOption(new Option('--permits <n>', 'permits of each request (default: 1)').argParser(wholeNumber(0, 1e9)))
    .addOption(new Option('--cost <name=amount>', 'a further cost of each request; repeatable').argParser(costs))
    .addOption(
      new Option('--cost-field <name=field>', 'a cost that is recorded in this field; repeatable').argParser(
        pairs('='),
      ),
    )
    .addOption(new Option('--json', 'print the result as one JSON document'))
}

const withBandOptions = (command: Command): Command =>
  command
    .addOption(new Option('--algorithm <names>', 'comma-separated list, or all (default: all)').argParser(algorithms))
    .addOption(new Option('--capacity <n>', 'requests allowed per window').default(10).argParser(capacityValue))
    .addOption(new Option('--window <duration>', 'length of the window').default(1_000_000, '1s').argParser(duration))
    .addOption(
      new Option('--refill-tokens <n>', 'tokens added per window (default: the capacity)').argParser(capacityValue),
    )
    .addOption(new Option('--refill <how>', 'refill of TOKEN_BUCKET').choices(['steady', 'interval']).default('steady'))

const withTrafficOptions = (command: Command): Command =>
  command
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
    .addOption(
      new Option('--start-at <time>', 'start of the simulated time, such as 2026-01-31T12:00Z').argParser(time),
    )
    .addOption(new Option('--start-offset <duration>', 'time of the first request').argParser(duration))
    .addOption(new Option('--duration <duration>', 'simulated time (default: six windows)').argParser(duration))
    .addOption(
      new Option('--seed <n>', 'random seed of arrivals and service times')
        .default(1)
        .argParser(wholeNumber(0, 2 ** 32 - 1)),
    )

/** Returns ticks since the epoch. */
function time(text: string): number {
  const at = /^\d{4}-/.test(text) ? parseTimestamp(text) : undefined
  if (at !== undefined) return at
  throw new InvalidArgumentError('It must be a date, or a date and time such as 2026-01-31T12:00Z.')
}

function durationField(text: string): SimulateOptions['durationField'] {
  const [, name, unit] = /^(.+)=(\w+)$/.exec(text) ?? []
  if (name !== undefined && unit !== undefined && Object.hasOwn(durationUnits, unit))
    return { name, unit: unit as DurationUnit }
  throw new InvalidArgumentError('It must be a field and a unit, such as duration=ms. Units: ns, us, ms, s.')
}
