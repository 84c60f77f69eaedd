/** Rule documents as TypeScript sees them: what a YAML or JSON file, REST, or code may say. `docs/reference/rules.md` explains each. */
import type { Consistency, LimitScope, Mode, OnMissingKey, OnStoreFailure, Policy, Strategy } from '../../core/rule.js'

export interface BandInput {
  readonly label?: string
  readonly capacity: number
  readonly refillTokens?: number
  /** `'1m'`, `'500ms'`, or a number of seconds. */
  readonly window?: string | number
  readonly refillSeconds?: number
  readonly windowSeconds?: number
  readonly refill?: 'STEADY' | 'INTERVAL'
  /** As in `AlgorithmName`; case, `-` and `_` do not matter. */
  readonly algorithm?: string
}

type Scalar = string | number | boolean

/** What rules in a set and rules alone have in common. */
interface RuleFields {
  readonly id?: string
  readonly name?: string
  readonly description?: string
  readonly enabled?: boolean
  readonly priority?: number
  readonly path?: string
  readonly method?: string | readonly string[]
  readonly when?: Readonly<Record<string, Scalar | readonly Scalar[]>>
  readonly limitScope?: LimitScope | 'PER_IP' | 'PER_USER' | 'PER_API_KEY'
  readonly compositeKeyFields?: readonly string[]
  readonly keyField?: string
  readonly keyResolver?: string
  readonly onMissingKey?: OnMissingKey
  readonly algorithm?: string
  readonly permits?: number
  readonly onLimitExceed?: Policy | 'REJECT_REQUEST'
  readonly maxWaitMs?: number
  readonly mode?: Mode
  readonly consistency?: Consistency
  readonly onStoreFailure?: OnStoreFailure
  readonly overrides?: boolean
  readonly attributes?: Readonly<Record<string, unknown>>
  /** Set by rule stores; a rule may be given back as it was received. */
  readonly createdAt?: string
  readonly updatedAt?: string
  readonly version?: number
}

export interface RuleInput extends RuleFields {
  readonly id: string
  readonly bands: readonly BandInput[]
}

/** A rule by itself: no id needed, and a single band may be written without `bands`. */
export interface LoneRuleInput extends RuleFields, Partial<Omit<BandInput, 'algorithm'>> {
  readonly bands?: readonly BandInput[]
}

export interface RuleSetInput {
  readonly id: string
  readonly description?: string
  readonly strategy?: Strategy
  /** Whether letter case matters in paths; default false. */
  readonly caseSensitive?: boolean
  /** Set by rule stores. */
  readonly version?: number
  readonly rules: readonly RuleInput[]
}
