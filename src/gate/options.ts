import type { BucketStore } from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import type { BucketResetHandler } from '../core/contracts/bucket-reset-handler.js'
import type { ReloadStrategy, RuleSetProvider } from '../core/contracts/rule-set-provider.js'
import type { NamedResolvers } from '../core/keys/scope-key-resolver.js'
import type { OnStoreFailure } from '../core/rule.js'
import type { RedisStoreSettings } from '../redis/client/open/target.js'
import type { RulesSettings } from '../rules/open-rule-store.js'
import type { ReloadChoice } from '../rules/reload/choose-reload.js'
import type { RuleSetInput } from '../rules/schema/input.js'
import type { RedisStoreOptions } from '../stores/redis/redis-store.js'
import type { ResilientOptions } from '../stores/resilient/resilient.js'
import type { WarningLogger } from '../validation/warnings.js'

/** Options of `createFluxGate`. Unknown and invalid options throw. */
export interface FluxGateOptions {
  /** The rules: path of a rules file, rule sets as objects, settings of a rule store, or a `RuleSetProvider`. */
  readonly rules?: string | RuleSetInput | readonly RuleSetInput[] | RulesSettings | RuleSetProvider
  /** The bucket store: `memory` (default), a `redis://` URI, Redis settings (cluster, Sentinel), or a `BucketStore`. */
  readonly store?: string | RedisStoreSettings | BucketStore
  /** Maximum number of keys in the memory store that the gate opens; default 1,000,000. */
  readonly maxKeys?: number
  /** Maximum number of reservations in the memory store that the gate opens, open or settled and not yet expired; default 200,000. */
  readonly maxReservations?: number
  /** Key resolvers for rules of scope CUSTOM, by the name in `keyResolver`. */
  readonly keyResolvers?: NamedResolvers
  /** Notified when the buckets of rules are reset. */
  readonly bucketResetHandler?: BucketResetHandler
  /** Rule set of requests that name none; default the only rule set, or the one named `default`. */
  readonly defaultRuleSetId?: string
  /** Decision for requests that no rule matches; default ALLOW. */
  readonly missingRuleBehavior?: 'ALLOW' | 'DENY'
  /** IPv6 addresses that share this many bits count as one; default 56. */
  readonly ipv6Prefix?: number
  /** When and how rules are reloaded. */
  readonly reload?: {
    /** Default AUTO, or NONE for rules given as objects. */
    readonly strategy?: ReloadChoice | ReloadStrategy
    /** PUBSUB with rules outside Redis: the channel, on the Redis of the store; default `fluxgate:rule-reload`. */
    readonly channel?: string
    /** Interval of POLLING in milliseconds; default 30,000. */
    readonly pollingIntervalMs?: number
    /** Same as `pollingIntervalMs`, in the notation of a file: `'30s'`, or a number of seconds. */
    readonly pollingInterval?: string | number
    /** Reset the buckets of rules whose bands changed; default true. */
    readonly resetBucketsOnReload?: boolean
  }
  /** The waiting room for delayed requests. */
  readonly waitForRefill?: {
    /** Longest wait in milliseconds, for rules without `maxWaitMs`; default 5000. */
    readonly maxWaitMs?: number
    /** Same as `maxWaitMs`, in the notation of a file: `'5s'`, or a number of seconds. */
    readonly maxWaitTime?: string | number
    /** Maximum number of delayed requests; further ones are rejected. Default 100. */
    readonly maxConcurrentWaits?: number
  }
  /** Failure policy of rules that have none of their own; default LOCAL. */
  readonly onStoreFailure?: OnStoreFailure
  /** Share of each limit that this process enforces under LOCAL; default 1. */
  readonly localShare?: number
  /** Timeout and circuit breaker of the store, and the timeout of its first connection. */
  readonly resilience?: Omit<ResilientOptions, 'clock' | 'onStateChange'> & Pick<RedisStoreOptions, 'connectTimeoutMs'>
  /** Receives warnings about likely misconfigurations, each once. Default: process warnings. */
  readonly logger?: WarningLogger
  /** Counts decisions for `gate.metrics()` and the collector of `fluxgate-js/prometheus`. Default: false. */
  readonly metrics?: boolean
  /** Path of a `fluxgate.yaml`. Options given in code take precedence over it. */
  readonly config?: string
  /** Clock of the gate and of its memory store, for tests. */
  readonly clock?: Clock
}
