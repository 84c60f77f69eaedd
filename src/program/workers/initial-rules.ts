/**
 * The initial rules of a worker. A replacement worker must start even if the rule store has become invalid in the meantime: it
 * then uses the last valid rules, which the primary keeps.
 */

import type { RuleSetProvider } from '../../core/contracts/rule-set-provider.js'
import { messageOf } from '../../core/errors.js'
import type { RuleSet } from '../../core/rule.js'
import type { FluxGate } from '../../gate/flux-gate.js'
import { forwardProvider } from '../../rules/forward-provider.js'
import { sendToPrimary } from './messages.js'

/** From the primary: requests the current rules, or sends the last valid ones (null if it has not received any). */
export type RulesMessage = { readonly rules: 'ASK' } | { readonly rules: 'LAST_VALID'; readonly ruleSets: unknown }

/** From a worker: the current rules, or a request for the last valid ones with the reason. */
export const activeRulesReport = 'rules'
export const lastValidRulesRequest = 'rules-wanted'

/** If the primary does not answer within this time, there are no last valid rules. */
const timeoutMs = 5_000

export interface InitialRules {
  readonly provider: RuleSetProvider
  /** True if the worker runs with the last valid rules. The caller must then reload, so that health shows the reason. */
  readonly isStale: boolean
}

/** Falls back to the last valid rules if the first load fails. Later loads come from the provider only. */
export function initialRules(rules: RuleSetProvider): InitialRules {
  let isFirst = true
  let isStale = false
  const load = async (): Promise<readonly RuleSet[]> => {
    if (!isFirst) return rules.load()
    isFirst = false
    try {
      return await rules.load()
    } catch (error) {
      const lastValid = await requestLastValid(messageOf(error))
      if (lastValid === null) throw error
      isStale = true
      return lastValid
    }
  }
  return {
    provider: { ...forwardProvider(rules), load },
    get isStale() {
      return isStale
    },
  }
}

/** Sends the current rules to the primary on request, without inline rules of routes, which come from the configuration. */
export function shareRules(gate: Pick<FluxGate, 'ruleSets'>): void {
  process.on('message', (message) => {
    if (!isRulesMessage(message) || message.rules !== 'ASK') return
    sendToPrimary({ event: activeRulesReport, value: gate.ruleSets.filter(({ isForItsRoute }) => !isForItsRoute) })
  })
}

function requestLastValid(reason: string): Promise<readonly RuleSet[] | null> {
  return new Promise((resolve) => {
    const settle = (ruleSets: unknown): void => {
      clearTimeout(timer)
      process.off('message', onMessage)
      resolve(ruleSets as readonly RuleSet[] | null)
    }
    const onMessage = (message: unknown): void => {
      if (isRulesMessage(message) && message.rules === 'LAST_VALID') settle(message.ruleSets)
    }
    const timer = setTimeout(settle, timeoutMs, null)
    process.on('message', onMessage)
    sendToPrimary({ event: lastValidRulesRequest, value: reason })
  })
}

const isRulesMessage = (message: unknown): message is RulesMessage =>
  typeof message === 'object' && message !== null && 'rules' in message
