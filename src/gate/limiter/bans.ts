import type { BucketGroup, BucketStore } from '../../core/bucket-store.js'
import type { ActiveBan, BanInput, BanQuery } from '../../core/contracts/ban-store.js'
import type { Page } from '../../core/contracts/rule-store.js'
import { FluxGateError } from '../../core/errors.js'
import type { Rule } from '../../core/rule.js'
import { banStore } from '../bans/ban-store.js'
import { ruleSetId } from './rule-buckets.js'

/** The bans of a limiter with `ban`. A change takes effect within a second in all processes. */
export interface LimiterBans {
  /** Lists the active bans, sorted by key. */
  list(query?: BanQuery): Promise<Page<ActiveBan>>
  /** Resolves to undefined if the key is not banned. */
  get(key: string): Promise<ActiveBan | undefined>
  /**
   * Bans a key by hand. Rejects with FLUXGATE_BAN_INVALID, whose `errors` list every validation issue.
   *
   * @example
   * await limiter.bans.set('203.0.113.7', { for: '1h' })
   */
  set(key: string, input?: BanInput): Promise<{ readonly ban: ActiveBan; readonly created: boolean }>
  /** Ends a ban and clears the escalation of the key. Resolves to false if the key is not banned. */
  lift(key: string): Promise<boolean>
}

interface LimiterParts {
  readonly rule: Rule
  readonly store: BucketStore
  readonly groupOf: () => BucketGroup
  /** Resolves once the store has been opened. */
  readonly open: () => Promise<void>
}

export function limiterBans({ rule, store, groupOf, open }: LimiterParts): LimiterBans {
  const opened = async () => {
    await open()
    // Read here, because a store that is imported on demand has its capabilities later.
    const { bans } = store
    if (bans === undefined)
      throw new FluxGateError(
        'FLUXGATE_ARGUMENT_INVALID',
        'The store does not support bans. Use memoryStore or redisStore.',
      )
    return banStore(bans, { ruleOf: () => ({ rule, group: groupOf() }) })
  }
  return {
    list: async (query) => (await opened()).list(ruleSetId, rule.id, query),
    get: async (key) => (await opened()).get(ruleSetId, rule.id, key),
    set: async (key, input) => (await opened()).set(ruleSetId, rule.id, key, input),
    lift: async (key) => (await opened()).lift(ruleSetId, rule.id, key),
  }
}
