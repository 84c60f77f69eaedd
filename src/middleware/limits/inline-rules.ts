/** Rules that are written into the options of a middleware: one, or several by name. */
import { systemClock } from '../../core/clock.js'
import { compileSnapshot, MissingKey, type Plan } from '../../core/decision/snapshot.js'
import type { RequestContext } from '../../core/request-context.js'
import { defaultMaxConcurrentWaits, defaultMaxWaitMs, WaitingRoom } from '../../core/waiting/waiting-room.js'
import { lazyRedisStore } from '../../gate/lazy-redis-store.js'
import { boundedStore, isStore, openStore } from '../../gate/open-store.js'
import type { FluxGateOptions } from '../../gate/options.js'
import { decisionReporter } from '../../gate/reporting/decision-reporter.js'
import { StandaloneHandler } from '../../handlers/standalone.js'
import type { GuardOptions } from '../../http/guard-options.js'
import { requireSources } from '../../http/identity-sources.js'
import type { BandInput, SingleRuleInput } from '../../rules/schema/input.js'
import { parseRule } from '../../rules/schema/parse-rules.js'
import { memoryStore } from '../../stores/memory/memory-store.js'
import type { Warnings } from '../../validation/warnings.js'
import { type OfRequest, type RequestLimits, readRequestLimits } from './request-limits.js'

/** A rule whose limit may depend on the request: `{ capacity: 100, window: '1m' }`, or any fields of a rule. */
export type InlineRule<Native = unknown> = LimitOfRequest<SingleRuleInput, Native>

/** Where the buckets of inline rules are kept, and how their requests wait. */
export interface InlineStorage {
  /** The bucket store: `memory` (default), a `redis://` URI, Redis settings, or a `BucketStore`. */
  readonly store?: FluxGateOptions['store']
  /** IPv6 addresses with the same prefix of this many bits share a key. Default 56. */
  readonly ipv6Prefix?: number
  /** The maximum number of delayed requests; further ones are rejected. Default 100. */
  readonly maxConcurrentWaits?: number
}

/** Distributes over the forms of a rule. The cost of a request is an option of the HTTP edge, which may be a function too. */
type LimitOfRequest<Rule, Native> = Rule extends { readonly bands: readonly BandInput[] }
  ? Omit<Rule, 'permits' | 'bands'> & {
      /**
       * The limits, or a function of the request that returns them. Every one must allow a request. Bands with the same label
       * count together, whatever their capacity. Default label of the bands of a function: the window, such as `per-1m`.
       */
      readonly bands: OfRequest<Native, readonly BandInput[]>
    }
  : Rule extends { readonly capacity: number }
    ? Omit<Rule, 'permits' | 'capacity'> & {
        /**
         * Permits per window, or the size of the bucket, or a function of the request that returns it: requests of a key count
         * together, whatever their capacity. 0 rejects every request.
         */
        readonly capacity: OfRequest<Native, number>
      }
    : never

/** A compiled rule. Guards that share it share its buckets. */
export interface CompiledInlineRule<Native> {
  readonly plan: Plan
  /** Set if the limit depends on the request. */
  readonly ofRequest: RequestLimits<Native> | undefined
}

interface CompileOptions<Native, Reply> {
  /** Rules with the same rule set, ID and bands share their buckets. */
  readonly ruleSetId: string
  readonly edge: GuardOptions<Native, Reply>
  readonly ipv6Prefix: number | undefined
  /** The path of the rule in messages; empty for a single rule. */
  readonly place?: string | undefined
}

/** Compiles a rule, and throws if it is invalid or counts by an identity without a source. */
export function compileInlineRule<Native, Reply>(
  document: Readonly<Record<string, unknown>>,
  { ruleSetId, edge, ipv6Prefix, place = '' }: CompileOptions<Native, Reply>,
): CompiledInlineRule<Native> {
  const ofRequest = readRequestLimits<Native>(document, place)
  const rule = ofRequest?.rule ?? parseRule({ id: 'limit', ...document }, place)
  requireSources(rule, edge)
  const { plans } = compileSnapshot([{ id: ruleSetId, strategy: 'all', rules: [rule] }], {
    ipv6Prefix,
    resolvers: undefined,
    maxWaitMs: defaultMaxWaitMs,
    resetBucketsOnReload: true,
    resets: () => 0,
  })
  const plan = plans.get(ruleSetId) as Plan
  return { plan: ofRequest?.applyTo(plan) ?? plan, ofRequest }
}

/**
 * Creates the handler of inline rules, which are decided together. `customize` replaces the hook of the options if a limit depends
 * on the request.
 */
export function createInlineHandler<Native, Reply>(
  rules: readonly CompiledInlineRule<Native>[],
  { store: storeOption, maxConcurrentWaits = defaultMaxConcurrentWaits }: InlineStorage,
  { clock = systemClock, customize }: GuardOptions<Native, Reply>,
  warnings: Warnings,
) {
  const plan = joinPlans(rules.map(({ plan }) => plan))
  const ofRequest = rules.flatMap(({ ofRequest }) => ofRequest ?? [])
  const store = boundedStore(openStore(storeOption, { clock, openRedis: lazyRedisStore }))
  const room = new WaitingRoom(maxConcurrentWaits, clock)
  const handler = new StandaloneHandler({
    snapshot: { plans: new Map([[plan.ruleSet.id, plan]]), defaultPlan: plan },
    store,
    localStore: memoryStore({ clock }),
    room,
    clock,
    missingRuleBehavior: 'ALLOW',
    onStoreFailure: 'LOCAL',
    localShare: 1,
    warnings,
  })
  return {
    handler: decisionReporter()?.handler(handler) ?? handler,
    customize: ofRequest.length === 0 ? customize : withLimits(ofRequest, customize),
    async close() {
      room.close()
      if (!isStore(storeOption)) await store.close()
    },
  }
}

/** A plan that charges the rules of all plans. The decision has the rule set of the first one. */
function joinPlans(plans: readonly Plan[]): Plan {
  const [first] = plans as [Plan]
  if (plans.length === 1) return first
  return {
    ruleSet: first.ruleSet,
    rules: new Map(plans.flatMap(({ rules }) => [...rules])),
    takesHolds: plans.some(({ takesHolds }) => takesHolds),
    costs: new Set(plans.flatMap(({ costs }) => [...costs])),
    charges(context, permits, costs) {
      const all = []
      for (const plan of plans) {
        const charges = plan.charges(context, permits, costs)
        if (charges instanceof MissingKey) return charges
        all.push(...charges)
      }
      return all
    },
  }
}

/** The hook that adds the limits of a request to its context, after the hook of the options. */
const withLimits =
  <Native>(
    ofRequest: readonly RequestLimits<Native>[],
    customize: GuardOptions<Native>['customize'],
  ): NonNullable<GuardOptions<Native>['customize']> =>
  async (given, request) => {
    let context: RequestContext = (await customize?.(given, request)) ?? given
    for (const limits of ofRequest) context = await limits.addTo(context, request)
    return context
  }
