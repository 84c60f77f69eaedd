/** Shapes of the statistics routes. */
export interface Counts {
  readonly allowed: number
  readonly delayed: number
  readonly denied: number
  readonly shadowDenied: number
}

export interface Summary {
  readonly sinceAt: number
  readonly totals: Counts & { readonly degraded: number }
  readonly rules: readonly (Counts & { readonly ruleSetId: string | null; readonly ruleId: string | null })[]
  readonly seconds: readonly (Counts & { readonly at: number })[]
}

export interface KeyCount {
  readonly ruleSetId: string | null
  readonly ruleId: string | null
  readonly key: string
  readonly requests: number
  readonly denied: number
  readonly lastAt: number
}

export interface RecentDecision {
  readonly at: number
  readonly allowed: boolean
  readonly delayMs: number
  readonly reason: string
  readonly ruleSetId: string | null
  readonly ruleId: string | null
  readonly band: string | null
  readonly key: string | null
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number | null
  readonly degraded: boolean
  readonly method: string | null
  readonly path: string | null
  readonly weight: number
}

export interface Health {
  readonly status: 'UP' | 'DEGRADED' | 'DOWN' | 'STOPPING'
  readonly store: { readonly status: string; readonly sinceAt: number | null; readonly error: string | null }
  readonly rules: { readonly status: string; readonly sinceAt: number | null; readonly error: string | null }
}

export interface Decision extends Omit<RecentDecision, 'at' | 'method' | 'path' | 'weight'> {
  readonly resetAt: number
  readonly policy: string
  readonly bands: readonly BandDecision[]
}

export interface BandDecision {
  readonly ruleId: string
  readonly label: string
  readonly key: string
  readonly limit: number
  readonly remaining: number
  readonly resetAt: number
  readonly retryAfterMs: number | null
  readonly allowed: boolean
  readonly shadow: boolean
  readonly windowMs: number
}
