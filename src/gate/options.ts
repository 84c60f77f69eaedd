import type { BucketResetHandler } from '../core/bucket-reset-handler.js'
import type { BucketStore } from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import type { NamedResolvers } from '../core/keys/scope-key-resolver.js'
import type { OnStoreFailure } from '../core/rule.js'
import type { ReloadStrategy, RuleSetProvider } from '../core/rule-set-provider.js'
import type { RedisStoreSettings } from '../redis/client/open/target.js'
import type { RulesSettings } from '../rules/open-rule-store.js'
import type { ReloadChoice } from '../rules/reload/choose-reload.js'
import type { RuleSetInput } from '../rules/schema/input.js'
import type { RedisStoreOptions } from '../stores/redis/redis-store.js'
import type { ResilientOptions } from '../stores/resilient/resilient.js'

export interface FluxGateOptions {
  /** A rules file, rule sets as objects, where a rule store is, or a rule store or another provider. */
  readonly rules?: string | RuleSetInput | readonly RuleSetInput[] | RulesSettings | RuleSetProvider
  /** Where buckets live: `memory` unless said otherwise, a `redis://` URI, where a cluster or sentinels are, or a store. */
  readonly store?: string | RedisStoreSettings | BucketStore
  /** How many identities the memory store made here remembers at most; default 1 000 000. */
  readonly maxKeys?: number
  /** For rules of scope CUSTOM, by the name that they use in `keyResolver`. */
  readonly keyResolvers?: NamedResolvers
  /** Told of rules whose buckets start afresh. */
  readonly bucketResetHandler?: BucketResetHandler
  readonly defaultRuleSetId?: string
  /** What becomes of a request that no rule covers; default ALLOW. */
  readonly missingRuleBehavior?: 'ALLOW' | 'DENY'
  readonly ipv6Prefix?: number
  readonly reload?: {
    readonly strategy?: ReloadChoice | ReloadStrategy
    /** PUBSUB, with rules that are kept elsewhere than in Redis: where the store's Redis is told of changes. */
    readonly channel?: string
    readonly pollingIntervalMs?: number
    /** The same as a file spells it: `'30s'`, or a number of seconds. */
    readonly pollingInterval?: string | number
    /** Whether a rule whose bands changed starts with fresh buckets; default true. */
    readonly resetBucketsOnReload?: boolean
  }
  readonly waitForRefill?: {
    readonly maxWaitMs?: number
    /** The same as a file spells it: `'5s'`, or a number of seconds. */
    readonly maxWaitTime?: string | number
    readonly maxConcurrentWaits?: number
  }
  /** What rules do that do not say it themselves, while the store fails; default LOCAL. */
  readonly onStoreFailure?: OnStoreFailure
  /** The part of each limit that this process takes over under LOCAL; default 1. */
  readonly localShare?: number
  /** Deadline and circuit breaker of the store, and how long its first connection is waited for. */
  readonly resilience?: Omit<ResilientOptions, 'clock' | 'onStateChange'> & Pick<RedisStoreOptions, 'connectTimeoutMs'>
  /** A fluxgate.yaml; what is given here beside it wins. */
  readonly config?: string
  readonly clock?: Clock
}
