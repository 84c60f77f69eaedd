import { createFluxGate } from '../app/create-flux-gate.js'
import { type Decide, recordedTraffic, simulateRules, virtualClock } from '../simulate/index.js'
import { paintFor, print, printData, widthOf } from './output.js'
import { recordingLines } from './recording-file.js'
import { knownRuleSet } from './rule-set-option.js'
import { recordingNotes, renderRulesSimulation } from './simulate-report.js'

export interface RuleSetOptions {
  readonly rules: string
  readonly from: string
  readonly ruleSet?: string
  readonly json?: true
}

/** The gate that applications use, on a clock that follows the recording. */
export async function simulateRuleSet({ rules, from, ruleSet, json }: RuleSetOptions): Promise<void> {
  const clock = virtualClock()
  const gate = await createFluxGate({ rules, clock, reload: { strategy: 'NONE' } })
  const ruleSetId = knownRuleSet(gate.ruleSets, ruleSet)
  const { arrivals, report } = recordedTraffic(await recordingLines(from), from)
  const decide: Decide = (context, at) => {
    clock.moveTo(at)
    return gate.check(context, { ruleSetId })
  }
  const simulation = await simulateRules(decide, arrivals).finally(() => gate.close())
  if (json) return printData({ rulesFile: rules, traffic: from, recording: report, ...simulation })
  const [source, ...notes] = recordingNotes(from, report, simulation.startAtMs)
  const paint = paintFor(process.stdout)
  const title = `${paint('bold', rules)} · ${source}`
  print([title, ...notes, '', ...renderRulesSimulation(simulation, widthOf(process.stdout), paint)].join('\n'))
}
