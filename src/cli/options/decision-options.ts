/** Options of the commands that decide a request with rules of their own or on a server. */
import { type Command, Option } from 'commander'
import { omitUndefined } from '../../core/omit-undefined.js'
import type { Costs } from '../../core/rule.js'
import type { LocalGateOptions } from '../local-gate.js'
import { costs, wholeNumber } from './option-values.js'
import { contextOf, type RequestOptions, withRequestOptions } from './request-options.js'
import { configOption, ruleSetOption } from './shared-options.js'

export interface DecisionOptions extends RequestOptions, LocalGateOptions {
  readonly server?: string
  readonly permits?: number
  readonly cost?: Costs
  readonly json?: true
}

/** `tokens` names the environment variables with the token of a server. */
export const withDecisionOptions = (command: Command, tokens: string): Command =>
  withRequestOptions(
    command
      .option('--rules <file>', 'rules file, YAML or JSON, with in-memory buckets')
      .addOption(
        configOption('the rules and the store', './fluxgate.yaml, or ./rules.yaml without one').conflicts('rules'),
      )
      .addOption(
        new Option('--server <url>', `ask a FluxGate server; token from ${tokens}`).conflicts(['rules', 'config']),
      )
      .addOption(ruleSetOption()),
  )
    .addOption(new Option('--permits <n>', 'permits to request (default: 1)').argParser(wholeNumber(0, 1e9)))
    .addOption(new Option('--cost <name=amount>', 'a further cost, such as tokens=1200; repeatable').argParser(costs))

/** The body of a request to a server: the context of the options, and what they charge. */
export const bodyOf = (options: DecisionOptions): object => {
  const { ruleSet: ruleSetId, permits, cost } = options
  return { ...contextOf(options), ...omitUndefined({ ruleSetId, permits, costs: cost }) }
}
