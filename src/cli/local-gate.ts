import { systemClock } from '../core/clock.js'
import { gateOptions } from '../gate/configured-options.js'
import { createFluxGate } from '../gate/create-flux-gate.js'
import type { FluxGate } from '../gate/flux-gate.js'
import type { FluxGateOptions } from '../gate/options.js'
import { readConfig } from './options/read-config.js'
import { knownRuleSet } from './options/rule-set-option.js'
import { displayPath } from './output/output.js'

export interface LocalGateOptions {
  readonly rules?: string
  readonly config?: string
  readonly ruleSet?: string
}

/** Opens a gate in this process with the rules and the store of the options, and closes it after `use`. */
export async function withLocalGate<T>(
  options: LocalGateOptions,
  use: (gate: FluxGate, ruleSetId: string | undefined) => Promise<T>,
): Promise<T> {
  const { rules, ruleSet } = options
  const settings = rules === undefined ? await configured(options) : { rules }
  // The clock does not advance, so that the result does not depend on the speed of the machine.
  const startedAt = systemClock.now()
  const gate = await createFluxGate({ ...settings, clock: { now: () => startedAt }, reload: { strategy: 'NONE' } })
  try {
    const usesConfiguredDefault = ruleSet === undefined && settings.defaultRuleSetId !== undefined
    return await use(gate, usesConfiguredDefault ? undefined : knownRuleSet(gate.ruleSets, ruleSet))
  } finally {
    await gate.close()
  }
}

/** The same configuration that `serve` would use here. Environment variables apply even without a file. */
async function configured(options: LocalGateOptions): Promise<FluxGateOptions> {
  const config = await readConfig(options)
  const { type, path: rulesFile } = config.rules
  return { ...gateOptions(config), ...(type === 'file' && { rules: { type, path: displayPath(rulesFile) } }) }
}
