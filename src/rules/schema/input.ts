/** The types of rule documents in code. YAML and JSON files and the REST API take the same fields; `docs/reference/rules.md` describes them. */
import type { CalendarUnit } from '../../core/calendar/calendar.js'
import type {
  AlgorithmName,
  Consistency,
  LimitScope,
  Mode,
  OnMissingKey,
  OnRuleChange,
  OnStoreFailure,
  Policy,
  Strategy,
} from '../../core/rule.js'

/** Completes the names of algorithms, and accepts other spellings of them. */
type AlgorithmInput = AlgorithmName | (string & Record<never, never>)

/** The window of a band, in exactly one spelling. */
type WindowInput =
  | {
      /** With a unit: `'500ms'`, `'10s'`, `'1m'`, `'2h'`, `'30d'`, `'1w'`, `'1 minute'`. */
      readonly window: string
      readonly windowMs?: undefined
      readonly windowSeconds?: undefined
      readonly refillSeconds?: undefined
      readonly calendar?: undefined
    }
  | {
      readonly window?: undefined
      /** The window in milliseconds. */
      readonly windowMs: number
      readonly windowSeconds?: undefined
      readonly refillSeconds?: undefined
      readonly calendar?: undefined
    }
  | {
      readonly window?: undefined
      readonly windowMs?: undefined
      /** The window in seconds. */
      readonly windowSeconds: number
      readonly refillSeconds?: undefined
      readonly calendar?: undefined
    }
  | {
      readonly window?: undefined
      readonly windowMs?: undefined
      readonly windowSeconds?: undefined
      /** Alias of `windowSeconds`. */
      readonly refillSeconds: number
      readonly calendar?: undefined
    }
  | {
      readonly window?: undefined
      readonly windowMs?: undefined
      readonly windowSeconds?: undefined
      readonly refillSeconds?: undefined
      /** `FIXED_WINDOW` only: one quota per period of the calendar, in place of a window. */
      readonly calendar: CalendarUnit
      /** IANA time zone of the calendar. Default: `UTC`. */
      readonly timeZone?: string
      /** First day of a period: 1 to 31 (`MONTH`), a weekday (`WEEK`) or `MM-DD` (`YEAR`). Default: 1, `MONDAY`, `01-01`. */
      readonly anchor?: number | string
    }

/** A CONCURRENCY band has no window. */
type NoWindow = { readonly [Name in WindowName]?: undefined }

/** A band without a window has `maxHold` or its own algorithm, so that a forgotten window does not compile. */
type HoldInput = NoWindow & ({ readonly maxHold: string } | { readonly algorithm: 'CONCURRENCY' })

interface BandFields {
  /** Unique in the rule. Default: derived from capacity and window, such as `100-per-1h`. */
  readonly label?: string
  /** Permits per window, or the size of the bucket. 0 rejects every request. */
  readonly capacity: number
  /** Permits added per window. Default: `capacity`, or 1 if it is 0. */
  readonly refillTokens?: number
  /** `TOKEN_BUCKET` only: continuous refill, or all at once at the end of each window. Default: `STEADY`. */
  readonly refill?: 'STEADY' | 'INTERVAL'
  /** `CONCURRENCY` only, in place of a window: a hold that is neither released nor renewed expires after this. Default: `'60s'`. */
  readonly maxHold?: string
}

/** One limit of a rule: a capacity per window. */
export type BandInput = BandFields &
  (WindowInput | HoldInput) & {
    /** Case, `-` and `_` are ignored. Default: the algorithm of the rule. */
    readonly algorithm?: AlgorithmInput
  }

/** A band of a single call. Without a label it belongs to the band of the rule at the same position. */
export interface CallBandInput extends BandFields {
  /** Default: the algorithm of the rule's band. */
  readonly algorithm?: AlgorithmInput
  /** The window with a unit. Default: the window of the rule's band. */
  readonly window?: string
  /** The window in milliseconds. */
  readonly windowMs?: number
  /** The window in seconds. */
  readonly windowSeconds?: number
  /** Alias of `windowSeconds`. */
  readonly refillSeconds?: number
}

type Scalar = string | number | boolean

/** The fields that `RuleInput` and `SingleRuleInput` share. */
interface RuleFields {
  /** Unique within the rule set. */
  readonly id?: string
  /** A name for people. It has no effect. */
  readonly name?: string
  /** A description for people. It has no effect. */
  readonly description?: string
  /** Default: true. */
  readonly enabled?: boolean
  /** Higher priorities come first. Default: 0. */
  readonly priority?: number
  /** A path pattern such as `/users/{id}/**`. Default: every path. */
  readonly path?: string
  /** `GET`, `['GET', 'HEAD']` or `*`. Default: every method. */
  readonly method?: string | readonly string[]
  /** Conditions on the request: field to value or list of values. Every field must match. */
  readonly when?: Readonly<Record<string, Scalar | readonly Scalar[]>>
  /** The key that is limited. Default: `IP`. */
  readonly limitScope?: LimitScope | 'PER_IP' | 'PER_USER' | 'PER_API_KEY'
  /** With `COMPOSITE`: the fields that form the key. */
  readonly compositeKeyFields?: readonly string[]
  /** With `CUSTOM`: the field that is the key, such as `header.x-tenant`. */
  readonly keyField?: string
  /** With `CUSTOM`: the name of a key resolver. */
  readonly keyResolver?: string
  /** Default: `ANONYMOUS`. */
  readonly onMissingKey?: OnMissingKey
  /** Algorithm of the bands that set none; case, `-` and `_` are ignored. Default: `TOKEN_BUCKET`. */
  readonly algorithm?: AlgorithmInput
  /** Permits that one request takes. Default: 1. */
  readonly permits?: number
  /** The cost of a request that the rule charges, such as `tokens`. Default: `requests`, which is the number of permits. */
  readonly cost?: string
  /** Default: `REJECT`. */
  readonly onLimitExceed?: Policy | 'REJECT_REQUEST'
  /** With `WAIT_FOR_REFILL`: the longest wait in milliseconds. */
  readonly maxWaitMs?: number
  /** Default: `ENFORCE`. */
  readonly mode?: Mode
  /** Percentage of keys for which the rule is enforced, 0 to 100; for all others, it is in shadow mode. Default: 100. */
  readonly enforcePercent?: number
  /** Default: `EXACT`. */
  readonly consistency?: Consistency
  /** The treatment of requests while the store fails. Default: the value in the configuration. */
  readonly onStoreFailure?: OnStoreFailure
  /** Bans a key after `after` rejections by this rule `within` a time, first `for` a time, then `factor` times as long, up to `max`. */
  readonly ban?: {
    readonly after: number
    readonly within: string | number
    readonly for: string | number
    readonly factor?: number
    readonly max?: string | number
  }
  /** Existing buckets when the bands change: start full, or keep their level. Default: the value in the configuration. */
  readonly onRuleChange?: OnRuleChange
  readonly replaces?: readonly string[]
  /** Enables overrides of the limits of single keys. Default: false. */
  readonly overrides?: boolean
  /** Data of your own, returned unchanged. */
  readonly attributes?: Readonly<Record<string, unknown>>
  /** `createdAt`, `updatedAt` and `version` are set by rule stores. They are accepted, so that a rule can be saved as it was read. */
  readonly createdAt?: string
  readonly updatedAt?: string
  readonly version?: number
}

/** A rule of a rule set. */
export interface RuleInput extends RuleFields {
  /** Unique within the rule set. */
  readonly id: string
  /** The limits. Every one must allow a request. */
  readonly bands: readonly BandInput[]
}

/** A rule outside a rule set, as `createLimiter` takes it. It needs no id, and a single band may be written without `bands`. */
export type SingleRuleInput = RuleFields &
  (
    | (BandFields &
        (WindowInput | HoldInput) & {
          /** The alternative to `capacity` and `window`. */
          readonly bands?: undefined
        })
    | ({
        /** The limits. Every one must allow a request. Alternative to `capacity` and `window`. */
        readonly bands: readonly BandInput[]
      } & {
        /** A rule with `bands` has these fields in each band instead. */
        readonly [Name in keyof BandFields | WindowName]?: undefined
      })
  )

type WindowName = 'window' | 'windowMs' | 'windowSeconds' | 'refillSeconds' | 'calendar' | 'timeZone' | 'anchor'

/** A set of rules that are decided together. */
export interface RuleSetInput {
  /** Unique among all rule sets. */
  readonly id: string
  /** A description for people. It has no effect. */
  readonly description?: string
  /** Apply all matching rules, or only the first. Default: `all`. */
  readonly strategy?: Strategy
  /** Makes path matching case-sensitive. Default: false. */
  readonly caseSensitive?: boolean
  /** For a candidate: the id of the rule set alongside which it is evaluated, without effect. */
  readonly candidateOf?: string
  /** Set by rule stores. */
  readonly version?: number
  /** The rules of the set. */
  readonly rules: readonly RuleInput[]
}
