import type { Ban } from './bans/ban.js'
import type { Calendar } from './calendar/calendar.js'

/**
 * Rules as the engine uses them: parsed, complete and readonly. `rules/schema` parses rule documents, with their aliases and
 * defaults, into these types.
 */
export const algorithmNames = [
  'TOKEN_BUCKET',
  'LEAKY_BUCKET',
  'FIXED_WINDOW',
  'SLIDING_WINDOW_LOG',
  'SLIDING_WINDOW_COUNTER',
  'CONCURRENCY',
] as const
/** The name of a rate limiting algorithm. */
export type AlgorithmName = (typeof algorithmNames)[number]

export const limitScopes = ['GLOBAL', 'IP', 'USER_ID', 'API_KEY', 'COMPOSITE', 'CUSTOM'] as const
/** The source of the key of a rule. */
export type LimitScope = (typeof limitScopes)[number]

/** The treatment of requests over the limit: reject them, or delay them until permits are refilled. */
export type Policy = 'REJECT' | 'WAIT_FOR_REFILL'
export type OnMissingKey = 'ANONYMOUS' | 'SKIP' | 'DENY'
export type Mode = 'ENFORCE' | 'SHADOW'
export type Consistency = 'EXACT' | 'LEASED'
/** The treatment of requests while the store fails: limits in this process, no limits, or rejections. */
export type OnStoreFailure = 'LOCAL' | 'ALLOW' | 'DENY'
export const ruleChanges = ['RESET', 'KEEP', 'SCALE'] as const
/** The treatment of existing buckets when the bands of their rule change: start full, keep their level, or keep the used fraction. */
export type OnRuleChange = (typeof ruleChanges)[number]
export type Strategy = 'all' | 'first'

/** One limit of a rule: at most `capacity` permits, refilled by `refillTokens` per window. */
export interface Band {
  /** Unique within the rule. */
  readonly label: string
  /** The algorithm of the buckets. */
  readonly algorithm: AlgorithmName
  /** TOKEN_BUCKET only: refill continuously, or by all `refillTokens` at the end of each window. */
  readonly refill: 'STEADY' | 'INTERVAL'
  /** The size of a bucket, or the permits per window. */
  readonly capacity: number
  /** Permits added per window. */
  readonly refillTokens: number
  /** The window in ticks (microseconds). CONCURRENCY: the time after which a hold expires, unless it is renewed. */
  readonly windowTicks: number
  /** FIXED_WINDOW only: windows are periods of this calendar. `windowTicks` is then the length of the longest period. */
  readonly calendar?: Calendar
  /** In an override: the index of the band of the rule that has the calendar. */
  readonly calendarOf?: number
  /** The starting balance: an unused bucket behaves as if `permits` had been taken from it at the tick `at`. */
  readonly spent?: { readonly permits: number; readonly at: number }
}

/** A parsed rule: which requests it applies to, how it derives their keys, and its limits. */
export interface Rule {
  /** Unique within the rule set. */
  readonly id: string
  /** A name for people. */
  readonly name?: string
  /** A description for people. */
  readonly description?: string
  /** A disabled rule matches no request. */
  readonly enabled: boolean
  /** Higher priorities come first. */
  readonly priority: number
  /** The path pattern. */
  readonly path: string
  /** Upper-case methods. Empty for any method. */
  readonly methods: readonly string[]
  /** Conditions that must all hold. */
  readonly when: readonly Condition[]
  /** The source of the key. */
  readonly limitScope: LimitScope
  /** COMPOSITE: the fields that form the key, otherwise empty. */
  readonly compositeKeyFields: readonly string[]
  /** CUSTOM: the field that is the key. */
  readonly keyField?: string
  /** CUSTOM: the name of the key resolver. */
  readonly keyResolver?: string
  /** Requests without the key share one bucket, skip the rule, or are rejected. */
  readonly onMissingKey: OnMissingKey
  /** The limits. All of them must allow a request. */
  readonly bands: readonly Band[]
  /** The cost of one request in permits. */
  readonly permits: number
  /** The name of the cost of a request that the rule charges. Default: `requests`. */
  readonly cost?: string
  /** The treatment of requests over the limit. */
  readonly policy: Policy
  /** Default: the value in the configuration. */
  readonly maxWaitMs?: number
  /** SHADOW: the rule counts, but never rejects. */
  readonly mode: Mode
  /** The share of keys, in percent, for which the rule is enforced; for all others, it is in shadow mode. Default: 100. */
  readonly enforcePercent?: number
  /** LEASED: processes reserve permits in advance and spend them without a round trip. */
  readonly consistency: Consistency
  /** Default: the value in the configuration. */
  readonly onStoreFailure?: OnStoreFailure
  /** Bans keys after repeated rejections by this rule. */
  readonly ban?: Ban
  /** Default: RESET, or KEEP if the configuration turns `resetBucketsOnReload` off. */
  readonly onRuleChange?: OnRuleChange
  /** Rules of the set that a joint decision does not charge if this rule applies to one of its contexts. */
  readonly replaces?: readonly string[]
  /** True if individual keys may have overrides. */
  readonly overrides: boolean
  /** Data of the author, returned unchanged. */
  readonly attributes?: unknown
  /** ISO 8601 time, set by rule stores. */
  readonly createdAt?: string
  /** ISO 8601 time, set by rule stores. */
  readonly updatedAt?: string
  /** Set by rule stores. */
  readonly version?: number
}

/** A condition on one field of the request, which must have one of the values. */
export interface Condition {
  /** `attributes.x`, `header.x`, `path.x`, `clientIp`, `userId`, `apiKey` or `method`. */
  readonly field: string
  readonly values: readonly string[]
}

/** A parsed rule set. */
export interface RuleSet {
  /** Unique among all rule sets. */
  readonly id: string
  /** A description for people. */
  readonly description?: string
  /** `all`: every matching rule applies. `first`: only the matching rule with the highest priority applies. */
  readonly strategy: Strategy
  /** True if path matching is case-sensitive. Otherwise `/Login` matches `/login`. */
  readonly caseSensitive?: boolean
  /** The rules, in the order of the document. */
  readonly rules: readonly Rule[]
  /** Set for a candidate: the id of the rule set alongside which it is evaluated, without effect. Its own id is `candidateIdOf` of it. */
  readonly candidateOf?: string
  /** Set for the limits of a single gateway route. Such a set is never the default rule set. */
  readonly isForItsRoute?: true
}

/** The id of the candidate of a rule set. A rule set has at most one. */
export const candidateIdOf = (ruleSetId: string): string => `${ruleSetId}.candidate`

/** Amounts of a request by name, such as `{ tokens: 1200 }`. */
export type Costs = Readonly<Record<string, number>>

/** The cost that every request has: its permits. */
export const requestCost = 'requests'

/** Adds HEAD to GET, because frameworks answer HEAD with the GET handler. */
export const withHead = (methods: readonly string[]): readonly string[] =>
  methods.includes('GET') && !methods.includes('HEAD') ? [...methods, 'HEAD'] : methods

/** True if a change of its bands resets the buckets of the rule. */
export const resetsOnChange = ({ onRuleChange }: Rule, resetBucketsOnReload: boolean): boolean =>
  onRuleChange === undefined ? resetBucketsOnReload : onRuleChange === 'RESET'

/** All fields that the key of a rule consists of. */
export function keyFieldsOf({ limitScope, compositeKeyFields, keyField }: Rule): readonly string[] {
  if (limitScope === 'COMPOSITE') return compositeKeyFields
  if (limitScope !== 'CUSTOM') return [limitScope]
  return keyField === undefined ? [] : [keyField]
}

/** True if the key of a request depends on its path. */
export const countsByPath = (rule: Rule): boolean =>
  keyFieldsOf(rule).some((field) => field === 'PATH' || field.startsWith('path.'))

/** The maximum of capacities, which are integers of at least 0, and of refills, which are at least 1. */
export const maxCapacity = 1_000_000_000
/** The maximum capacity of a sliding window log, which keeps an entry per request. */
export const maxLogCapacity = 100_000
/** The maximum capacity of CONCURRENCY, which keeps an entry per hold. */
export const maxConcurrency = 10_000
/** The default of `maxHold`. */
export const defaultMaxHoldTicks = 60_000_000
export const minWindowTicks = 1_000
export const maxWindowTicks = 366 * 24 * 3600 * 1_000_000
/**
 * The longest legal time in which an empty bucket fills, about 142 years. Timestamps are exact below 2⁵³ µs (the year 2255),
 * so the reset time of a slower band could not be represented.
 */
export const maxFillTicks = 2 ** 52
