/** The state of the playground and its traffic. All of it is in the URL. */

import { algorithmTraits } from '../../../../src/core/algorithm-traits.js'
import { type AlgorithmName, algorithmNames, type Band } from '../../../../src/core/rule.js'
import { seededRandom } from '../../../../src/core/seeded-random.js'
import type { Arrival } from '../../../../src/simulate/arrival.js'
import { type Simulation, simulateBands } from '../../../../src/simulate/simulate-bands.js'
import { burst, poisson, uniform } from '../../../../src/simulate/traffic.js'

export const trafficKinds = ['edge', 'steady', 'poisson', 'double', 'drawn'] as const
type TrafficKind = (typeof trafficKinds)[number]

export interface Scenario {
  readonly traffic: TrafficKind
  readonly capacity: number
  /** Milliseconds. */
  readonly windowMs: number
  /** Milliseconds that a request takes. Only CONCURRENCY depends on it. */
  readonly hold: number
  /** Requests in percent of the limit. */
  readonly load: number
  /** Requests per slot of the drawn traffic. */
  readonly drawn: readonly number[]
}

export const slots = 48
export const windows = 6
export const limits = { capacity: [1, 50], windowMs: [200, 10_000], hold: [50, 10_000], load: [10, 400] } as const
const ticksPerMs = 1_000
/** Digits of drawn counts in the URL. */
const digits = '0123456789abcdefghijklmnopqrstuvwxyz'
export const maxDrawn = digits.length - 1

const firstDrawing = Array.from({ length: slots }, (_, i) =>
  Math.round(6 + 5 * Math.sin(i / 3) + (i % 11 === 0 ? 9 : 0)),
)

export function parseScenario(query: URLSearchParams): Scenario {
  const number = (name: string, fallback: number, [min, max]: readonly [number, number]): number => {
    const value = Number(query.get(name) ?? fallback)
    return Number.isFinite(value) ? Math.min(max, Math.max(min, Math.round(value))) : fallback
  }
  const drawing = query.get('drawn') ?? ''
  return {
    traffic: trafficKinds.find((kind) => kind === query.get('traffic')) ?? 'edge',
    capacity: number('capacity', 10, limits.capacity),
    windowMs: number('window', 1_000, limits.windowMs),
    hold: number('hold', 300, limits.hold),
    load: number('load', 120, limits.load),
    drawn: new RegExp(`^[0-9a-z]{${slots}}$`).test(drawing)
      ? [...drawing].map((digit) => digits.indexOf(digit))
      : firstDrawing,
  }
}

export const scenarioQuery = ({
  traffic,
  capacity,
  windowMs,
  hold,
  load,
  drawn,
}: Scenario): Record<string, string> => ({
  traffic,
  capacity: String(capacity),
  window: String(windowMs),
  hold: String(hold),
  ...((traffic === 'steady' || traffic === 'poisson') && { load: String(load) }),
  ...(traffic === 'drawn' && { drawn: drawn.map((count) => digits[count]).join('') }),
})

function* arrivals({ traffic, capacity, windowMs, load, drawn }: Scenario): Generator<Arrival> {
  const window = windowMs * ticksPerMs
  const span = { from: 0, until: windows * window }
  const rate = ((load / 100) * capacity * 1_000) / windowMs
  if (traffic === 'steady') yield* uniform(rate, span)
  else if (traffic === 'poisson') yield* poisson(rate, span, seededRandom(7))
  else if (traffic === 'edge')
    yield* burst({ size: 2 * capacity, every: 2 * window, spread: window / 5 }, { ...span, from: 0.9 * window })
  else if (traffic === 'double') {
    for (let start = window / 4; start < span.until; start += 3 * window)
      for (const offset of [0, 0.6 * window])
        yield* burst(
          { size: capacity, every: span.until, spread: window / 20 },
          { from: start + offset, until: span.until },
        )
  } else {
    const slot = span.until / slots
    for (const [i, count] of drawn.entries())
      for (let n = 0; n < count; n++) yield { at: Math.floor(i * slot + (n * slot) / count) }
  }
}

/** Runs all algorithms. Each request is in progress for `hold`; only CONCURRENCY depends on it. */
export function runScenario(scenario: Scenario): Promise<Simulation> {
  const { capacity, windowMs, hold } = scenario
  const window = windowMs * ticksPerMs
  const duration = hold * ticksPerMs
  const bandOf = (algorithm: AlgorithmName): Band => ({
    label: algorithm,
    algorithm,
    refill: 'STEADY',
    capacity,
    refillTokens: capacity,
    windowTicks: algorithmTraits[algorithm].takesHolds ? duration : window,
  })
  const options = { startAt: 0, until: windows * window, window, serviceTime: () => duration }
  return simulateBands(algorithmNames.map(bandOf), arrivals(scenario), options)
}
