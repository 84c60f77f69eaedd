/** The limits under test: the rule document that the processes load, and the same limits as the checker sees them. */

export interface Limit {
  readonly rule: string
  readonly algorithm: 'TOKEN_BUCKET' | 'FIXED_WINDOW' | 'SLIDING_WINDOW_LOG' | 'SLIDING_WINDOW_COUNTER' | 'LEAKY_BUCKET'
  readonly path: string
  readonly scope: 'USER_ID' | 'API_KEY'
  readonly capacity: number
  readonly refillTokens: number
  readonly windowMs: number
  readonly isLeased?: boolean
}

const limit = (rule: string, algorithm: Limit['algorithm'], more: Partial<Limit>): Limit => ({
  rule,
  algorithm,
  path: `/${rule}`,
  scope: 'USER_ID',
  capacity: 20,
  refillTokens: 30,
  windowMs: 1_000,
  ...more,
})

/** Small enough that the load exceeds each of them about twice. */
export const limits: readonly Limit[] = [
  limit('token', 'TOKEN_BUCKET', {}),
  limit('window', 'FIXED_WINDOW', { capacity: 30 }),
  limit('log', 'SLIDING_WINDOW_LOG', { capacity: 30 }),
  limit('counter', 'SLIDING_WINDOW_COUNTER', {}),
  limit('leaky', 'LEAKY_BUCKET', { capacity: 10 }),
  limit('leased', 'TOKEN_BUCKET', { capacity: 60, isLeased: true }),
  limit('pair-user', 'TOKEN_BUCKET', { path: '/pair' }),
  limit('pair-key', 'FIXED_WINDOW', { path: '/pair', scope: 'API_KEY', capacity: 40 }),
]

/** A limit without a rule set: `createLimiter` in the library processes. */
export const limiterLimit: Limit = limit('limiter', 'TOKEN_BUCKET', {})

/** Limits whose capacity the rule edits change. */
export const editedRules: readonly string[] = ['token', 'window', 'log']

/** Paths whose limit a gateway's response headers describe completely. */
export const gatewayPaths: readonly string[] = ['/token', '/window', '/log']

export const ruleSetId = 'chaos'

export const limitOf = (rule: string): Limit => {
  const found = [...limits, limiterLimit].find((one) => one.rule === rule)
  if (!found) throw new Error(`no limit is named ${rule}`)
  return found
}

/** Windows have no refill apart from their capacity. */
export const bandOf = ({ algorithm, capacity, refillTokens, windowMs }: Limit, newCapacity = capacity) => ({
  label: 'band',
  capacity: newCapacity,
  window: `${windowMs}ms`,
  ...(algorithm === 'TOKEN_BUCKET' || algorithm === 'LEAKY_BUCKET' ? { refillTokens } : {}),
})

export const ruleDocument = () => ({
  ruleSets: [
    {
      id: ruleSetId,
      rules: limits.map((one) => ({
        id: one.rule,
        path: one.path,
        limitScope: one.scope,
        algorithm: one.algorithm,
        bands: [bandOf(one)],
        ...(one.isLeased && { consistency: 'LEASED' }),
      })),
    },
  ],
})
