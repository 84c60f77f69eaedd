/** Runs a rule set over requests and reports which of them it rejects, by rule. */
import type { Decision } from '../core/decision.js'
import type { Arrival, Arrivals } from './arrival.js'
import { HeldRequests, type SimulatedHolds } from './held-requests.js'
import { RulesMeter, type RulesSimulation } from './rules-meter.js'
import type { SimulationOptions } from './simulate-bands.js'

/** A gate or handler that decides on the virtual clock. */
export interface SimulatedRules extends SimulatedHolds {
  /** Decides about an arrival, whose time is the time of the clock. */
  decide(arrival: Arrival): Decision | Promise<Decision>
}

export async function simulateRules(
  rules: SimulatedRules,
  arrivals: Arrivals,
  options: SimulationOptions = {},
): Promise<RulesSimulation> {
  const meter = new RulesMeter(options)
  const held = new HeldRequests(rules)
  for await (const arrival of arrivals) {
    const { at, duration = options.serviceTime?.() } = arrival
    if (held.waiting > 0) await held.advanceTo(at)
    else held.moveTo(at)
    const record = (decision: Decision, waited: number): void => {
      meter.record(at, decision, waited, duration)
      held.start(decision, duration ?? 0)
    }
    const deciding = rules.decide(arrival)
    if (deciding instanceof Promise) await held.wait(deciding, at, record)
    else record(deciding, 0)
  }
  await held.finish()
  return meter.result()
}
