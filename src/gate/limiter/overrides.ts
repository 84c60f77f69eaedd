import type { BucketStore } from '../../core/bucket-store.js'
import type { Clock } from '../../core/clock.js'
import type { Override, OverrideQuery } from '../../core/contracts/override-store.js'
import type { Page } from '../../core/contracts/rule-store.js'
import { FluxGateError } from '../../core/errors.js'
import type { Rule } from '../../core/rule.js'
import { overrideStore } from '../overrides/override-store.js'
import { ruleSetId } from './rule-buckets.js'

/** The overrides of a limiter with `overrides: true`. A change takes effect for the next decision, in all processes. */
export interface LimiterOverrides {
  /** Lists the overrides, sorted by key. */
  list(query?: OverrideQuery): Promise<Page<Override>>
  /** Resolves to undefined if the key has no override. */
  get(key: string): Promise<Override | undefined>
  /**
   * Creates or replaces an override. Rejects with FLUXGATE_OVERRIDE_INVALID, whose `errors` list every validation issue.
   *
   * @example
   * await limiter.overrides.put({ key: 'user:42', action: 'LIMIT', bands: [{ capacity: 1000, window: '1m' }] })
   */
  put(override: Override): Promise<{ readonly created: boolean }>
  /** Resolves to false if there was no such override. */
  delete(key: string): Promise<boolean>
}

interface LimiterParts {
  readonly rule: Rule
  readonly store: BucketStore
  readonly clock: Clock
  /** Resolves once the store has been opened. */
  readonly open: () => Promise<void>
}

export function limiterOverrides({ rule, store, clock, open }: LimiterParts): LimiterOverrides {
  const opened = async () => {
    await open()
    // Read here, because a store that is imported on demand has its capabilities later.
    const { overrides } = store
    if (overrides === undefined) throw invalid('The store keeps no overrides. Use memoryStore or redisStore.')
    return overrideStore(overrides, { ruleOf: () => rule, clock })
  }
  return {
    list: async (query) => (await opened()).list(ruleSetId, rule.id, query),
    get: async (key) => (await opened()).get(ruleSetId, rule.id, key),
    async put(override) {
      if (!rule.overrides) throw invalid('The limiter ignores overrides. Set overrides: true in its options.')
      return (await opened()).put(ruleSetId, rule.id, override)
    },
    delete: async (key) => (await opened()).delete(ruleSetId, rule.id, key),
  }
}

const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
