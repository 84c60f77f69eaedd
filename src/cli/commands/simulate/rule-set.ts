import { takeHolds } from '../../../core/algorithm-traits.js'
import { ticksPerMs } from '../../../core/clock.js'
import type { RequestContext } from '../../../core/request-context.js'
import type { RuleSet } from '../../../core/rule.js'
import { createFluxGate } from '../../../gate/create-flux-gate.js'
import type { FluxGate } from '../../../gate/flux-gate.js'
import {
  type Arrival,
  recordedTraffic,
  type SimulatedRules,
  simulateRules,
  virtualClock,
} from '../../../simulate/index.js'
import { contextOf } from '../../options/request-options.js'
import { knownRuleSet } from '../../options/rule-set-option.js'
import { formatDuration } from '../../output/format-duration.js'
import { paintFor, print, printData, widthOf } from '../../output/output.js'
import type { SimulateOptions } from './options.js'
import { recordingLines } from './recording-file.js'
import { recordingNotes, renderRulesSimulation } from './report.js'
import { needServiceTime, serviceTimeOf, withDurations } from './service-time.js'
import { syntheticTraffic } from './traffic.js'

export type RuleSetOptions = SimulateOptions & { readonly rules: string }

/** Simulates with a real gate, on a virtual clock that follows the traffic. */
export async function simulateRuleSet(options: RuleSetOptions): Promise<void> {
  const clock = virtualClock()
  clock.moveTo(options.startAt ?? 0)
  const gate = await createFluxGate({ rules: options.rules, clock, reload: { strategy: 'NONE' } })
  try {
    const ruleSetId = knownRuleSet(gate.ruleSets, options.ruleSet)
    const rules = simulatedRules(gate, clock, ruleSetId, options)
    await (options.from === undefined
      ? simulateRequests(options, rules, await tightestLimit(gate, contextOf(options), ruleSetId), gate.ruleSets)
      : simulateRecording(options, rules, options.from, gate.ruleSets))
  } finally {
    await gate.close()
  }
}

function simulatedRules(
  gate: FluxGate,
  clock: SimulatedRules['clock'],
  ruleSetId: string | undefined,
  { permits, cost }: RuleSetOptions,
): SimulatedRules {
  return {
    clock,
    decide: ({ context = {}, costs }) =>
      gate.decide(context, {
        ruleSetId,
        permits,
        costs: cost === undefined || costs === undefined ? (costs ?? cost) : { ...cost, ...costs },
      }),
    release: (holdId) => gate.release(holdId),
    renew: (holdId) => gate.renew(holdId),
  }
}

/** The first rule that limits requests in progress. */
const holdingRule = (ruleSets: readonly RuleSet[]): string | undefined =>
  ruleSets.flatMap(({ rules }) => rules).find(({ bands }) => takeHolds(bands))?.id

async function simulateRecording(
  options: RuleSetOptions,
  rules: SimulatedRules,
  from: string,
  ruleSets: readonly RuleSet[],
): Promise<void> {
  const { costField: costFields, durationField } = options
  const { arrivals, report } = recordedTraffic(await recordingLines(from), from, { costFields, durationField })
  const serviceTime = serviceTimeOf(options)
  const holding = holdingRule(ruleSets)
  const needsDurations = holding !== undefined && serviceTime === undefined
  const checked = needsDurations ? withDurations(arrivals, `Rule ${holding}`) : arrivals
  const simulation = await simulateRules(rules, checked, { serviceTime })
  if (options.json) return printData({ rulesFile: options.rules, traffic: from, recording: report, ...simulation })
  const [source, ...notes] = recordingNotes(from, report, simulation.startAtMs)
  const paint = paintFor(process.stdout)
  const title = `${paint('bold', options.rules)} · ${source}`
  print([title, ...notes, '', ...renderRulesSimulation(simulation, widthOf(process.stdout), paint)].join('\n'))
}

/** Repeats one request at the times of synthetic traffic. */
async function simulateRequests(
  options: RuleSetOptions,
  rules: SimulatedRules,
  limit: Limit,
  ruleSets: readonly RuleSet[],
): Promise<void> {
  const { startAt = 0 } = options
  const serviceTime = serviceTimeOf(options)
  const holding = holdingRule(ruleSets)
  if (holding !== undefined && serviceTime === undefined) throw needServiceTime(`Rule ${holding}`)
  const { description, arrivals, until } = syntheticTraffic(options, limit.capacity, limit.windowTicks)
  const requests = withContext(arrivals, contextOf(options))
  const simulation = await simulateRules(rules, requests, { startAt, until, serviceTime })
  if (options.json) return printData({ rulesFile: options.rules, traffic: description, ...simulation })
  const paint = paintFor(process.stdout)
  const title = `${paint('bold', options.rules)} · ${description} · ${formatDuration((until - startAt) / ticksPerMs)}`
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
  // A limit of requests in progress has no window, and a capacity of 0 no rate.
  return { capacity: Math.max(1, deciding.limit), windowTicks: (deciding.windowMs || 1_000) * ticksPerMs }
}
