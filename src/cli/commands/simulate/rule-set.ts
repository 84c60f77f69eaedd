import { takeHolds } from '../../../core/algorithm-traits.js'
import { ticksPerMs } from '../../../core/clock.js'
import type { RequestContext } from '../../../core/request-context.js'
import type { RuleSet } from '../../../core/rule.js'
import { createFluxGate } from '../../../gate/create-flux-gate.js'
import type { FluxGate } from '../../../gate/flux-gate.js'
import { type Arrival, type Decide, recordedTraffic, simulateRules, virtualClock } from '../../../simulate/index.js'
import { UsageError } from '../../failure.js'
import { contextOf, type RequestOptions } from '../../options/request-options.js'
import { knownRuleSet } from '../../options/rule-set-option.js'
import { formatDuration } from '../../output/format-duration.js'
import { paintFor, print, printData, widthOf } from '../../output/output.js'
import { recordingLines } from './recording-file.js'
import { recordingNotes, renderRulesSimulation } from './report.js'
import { syntheticTraffic, type TrafficOptions } from './traffic.js'

export interface RuleSetOptions extends TrafficOptions, RequestOptions {
  readonly rules: string
  readonly from?: string
  readonly ruleSet?: string
  readonly json?: true
}

/** Simulates with a real gate, on a virtual clock that follows the traffic. */
export async function simulateRuleSet(options: RuleSetOptions): Promise<void> {
  const clock = virtualClock()
  const gate = await createFluxGate({ rules: options.rules, clock, reload: { strategy: 'NONE' } })
  try {
    const ruleSetId = knownRuleSet(gate.ruleSets, options.ruleSet)
    checkRates(gate.ruleSets)
    const decide: Decide = (context, at) => {
      clock.moveTo(at)
      return gate.check(context, { ruleSetId })
    }
    await (options.from === undefined
      ? simulateRequests(options, decide, await tightestLimit(gate, contextOf(options), ruleSetId))
      : simulateRecording(options, decide, options.from))
  } finally {
    await gate.close()
  }
}

/** Traffic has no durations, so requests in progress are unknown. */
function checkRates(ruleSets: readonly RuleSet[]): void {
  for (const { rules } of ruleSets)
    for (const { id, bands } of rules)
      if (takeHolds(bands))
        throw new UsageError(
          `Rule ${id} has the algorithm CONCURRENCY, which cannot be simulated, because traffic has no durations. Remove it from the simulated rules.`,
        )
}

async function simulateRecording({ rules, json }: RuleSetOptions, decide: Decide, from: string): Promise<void> {
  const { arrivals, report } = recordedTraffic(await recordingLines(from), from)
  const simulation = await simulateRules(decide, arrivals)
  if (json) return printData({ rulesFile: rules, traffic: from, recording: report, ...simulation })
  const [source, ...notes] = recordingNotes(from, report, simulation.startAtMs)
  const paint = paintFor(process.stdout)
  const title = `${paint('bold', rules)} · ${source}`
  print([title, ...notes, '', ...renderRulesSimulation(simulation, widthOf(process.stdout), paint)].join('\n'))
}

/** Repeats one request at the times of synthetic traffic. */
async function simulateRequests(options: RuleSetOptions, decide: Decide, limit: Limit): Promise<void> {
  const { description, arrivals, until } = syntheticTraffic(options, limit.capacity, limit.windowTicks)
  const requests = withContext(arrivals, contextOf(options))
  const simulation = await simulateRules(decide, requests, { startAt: 0, until })
  if (options.json) return printData({ rulesFile: options.rules, traffic: description, ...simulation })
  const paint = paintFor(process.stdout)
  const title = `${paint('bold', options.rules)} · ${description} · ${formatDuration(until / ticksPerMs)}`
  print([title, '', ...renderRulesSimulation(simulation, widthOf(process.stdout), paint)].join('\n'))
}

function* withContext(arrivals: Iterable<Arrival>, context: RequestContext): Generator<Arrival> {
  for (const { at } of arrivals) yield { at, context }
}

interface Limit {
  readonly capacity: number
  readonly windowTicks: number
}

/** The most restrictive limit for such a request. The defaults of the synthetic traffic are derived from it. */
async function tightestLimit(gate: FluxGate, context: RequestContext, ruleSetId: string | undefined): Promise<Limit> {
  const { bands, ruleId, band } = await gate.check(context, { ruleSetId, peek: true })
  const deciding = bands.find((one) => one.ruleId === ruleId && one.label === band) ?? bands[0]
  if (deciding === undefined) return { capacity: 10, windowTicks: 1_000_000 }
  return { capacity: deciding.limit, windowTicks: deciding.windowMs * ticksPerMs }
}
