/**
 * The vocabulary of rules, as the engine sees them: parsed, filled in, readonly. Documents, with their aliases and
 * defaults, are the business of `rules/schema`.
 */
export const algorithmNames = [
  'TOKEN_BUCKET',
  'LEAKY_BUCKET',
  'FIXED_WINDOW',
  'SLIDING_WINDOW_LOG',
  'SLIDING_WINDOW_COUNTER',
] as const
export type AlgorithmName = (typeof algorithmNames)[number]

export const limitScopes = ['GLOBAL', 'IP', 'USER_ID', 'API_KEY', 'COMPOSITE', 'CUSTOM'] as const
export type LimitScope = (typeof limitScopes)[number]

export type Policy = 'REJECT' | 'WAIT_FOR_REFILL'
export type OnMissingKey = 'ANONYMOUS' | 'SKIP' | 'DENY'
export type Mode = 'ENFORCE' | 'SHADOW'
export type Consistency = 'EXACT' | 'LEASED'
export type OnStoreFailure = 'LOCAL' | 'ALLOW' | 'DENY'
export type Strategy = 'all' | 'first'

/** How often: at most `capacity`, refilled by `refillTokens` each window. */
export interface Band {
  readonly label: string
  readonly algorithm: AlgorithmName
  /** TOKEN_BUCKET only: steadily, or all of `refillTokens` at once at the end of each interval. */
  readonly refill: 'STEADY' | 'INTERVAL'
  readonly capacity: number
  readonly refillTokens: number
  /** The window in ticks (microseconds). */
  readonly windowTicks: number
  /** A bucket that nobody has used is as if so many permits had been taken from it at the tick `at`: a starting balance. */
  readonly spent?: { readonly permits: number; readonly at: number }
}

/** Who may do what, how often. */
export interface Rule {
  readonly id: string
  readonly name?: string
  readonly description?: string
  readonly enabled: boolean
  readonly priority: number
  readonly path: string
  /** Upper-case methods; empty means any. */
  readonly methods: readonly string[]
  /** Field → values, one of which it must have; all fields must hold. */
  readonly when: readonly Condition[]
  readonly limitScope: LimitScope
  readonly compositeKeyFields: readonly string[]
  readonly keyField?: string
  readonly keyResolver?: string
  readonly onMissingKey: OnMissingKey
  readonly bands: readonly Band[]
  readonly permits: number
  readonly policy: Policy
  /** Undefined: the configuration's. */
  readonly maxWaitMs?: number
  readonly mode: Mode
  readonly consistency: Consistency
  readonly onStoreFailure?: OnStoreFailure
  readonly overrides: boolean
  readonly attributes?: unknown
  readonly createdAt?: string
  readonly updatedAt?: string
  readonly version?: number
}

export interface Condition {
  /** `attributes.x`, `header.x`, `path.x`, `clientIp`, `userId`, `apiKey`, `method` */
  readonly field: string
  readonly values: readonly string[]
}

export interface RuleSet {
  readonly id: string
  readonly description?: string
  readonly strategy: Strategy
  /** Whether letter case matters in paths; otherwise `/Login` is `/login`. */
  readonly caseSensitive?: boolean
  readonly rules: readonly Rule[]
  /** Never that of requests which name none: what a route of the gateway says about its own limits. */
  readonly isForItsRoute?: true
}

/** Frameworks answer HEAD with the handler of GET, so a limit on GET is one on both. */
export const withHead = (methods: readonly string[]): readonly string[] =>
  methods.includes('GET') && !methods.includes('HEAD') ? [...methods, 'HEAD'] : methods

/** Every field that the key of a rule consists of. */
export function keyFieldsOf({ limitScope, compositeKeyFields, keyField }: Rule): readonly string[] {
  if (limitScope === 'COMPOSITE') return compositeKeyFields
  if (limitScope !== 'CUSTOM') return [limitScope]
  return keyField === undefined ? [] : [keyField]
}

/** Whether requests with different paths may have different keys. */
export const countsByPath = (rule: Rule): boolean =>
  keyFieldsOf(rule).some((field) => field === 'PATH' || field.startsWith('path.'))

/** Capacities and refills are whole numbers from 1 to this. */
export const maxCapacity = 1_000_000_000
/** A sliding log keeps an entry per request, so its capacity has a smaller maximum. */
export const maxLogCapacity = 100_000
export const minWindowTicks = 1_000
export const maxWindowTicks = 366 * 24 * 3600 * 1_000_000
/**
 * The longest an empty bucket may take to fill. Instants are exact below 2⁵³ µs (the year 2255); a band that fills
 * later than about 142 years from now could not say when, so it is refused as a rule.
 */
export const maxFillTicks = 2 ** 52
