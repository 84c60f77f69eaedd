import { systemClock } from '../../core/clock.js'
import { closeOnError } from '../../core/close-on-error.js'
import { compileSnapshot } from '../../core/decision/snapshot.js'
import { FluxGateError } from '../../core/errors.js'
import type { Handler } from '../../core/handler.js'
import { defaultMaxConcurrentWaits, defaultMaxWaitMs, WaitingRoom } from '../../core/waiting/waiting-room.js'
import type { FluxGate } from '../../gate/flux-gate.js'
import { boundedStore, isStore, openStore } from '../../gate/open-store.js'
import type { FluxGateOptions } from '../../gate/options.js'
import { redisStoreLater } from '../../gate/redis-store-later.js'
import { decisionReporter } from '../../gate/reporting/decision-reporter.js'
import { StandaloneHandler } from '../../handlers/standalone.js'
import { unknownRuleSet } from '../../handlers/unknown-rule-set.js'
import { Guard } from '../../http/guard.js'
import type { GuardOptions } from '../../http/guard-options.js'
import {
  type IdentitySources,
  requireSources,
  type WatchedRules,
  watchIdentitySources,
} from '../../http/identity-sources.js'
import type { BandInput, SingleRuleInput } from '../../rules/schema/input.js'
import { parseRule } from '../../rules/schema/parse-rules.js'
import { memoryStore } from '../../stores/memory/memory-store.js'
import { Warnings } from '../../validation/warnings.js'
import { checkEdgeOptions, isEdgeOption } from './edge-options.js'
import { type OfRequest, readRequestLimits } from './request-limits.js'

/** A limit with an inline rule: `{ capacity: 100, window: '1m' }`, or any fields of a rule. */
export type SingleLimit<Native = unknown> = LimitOfRequest<SingleRuleInput, Native> & {
  readonly gate?: undefined
  readonly handler?: undefined
  /** The bucket store: `memory` (default), a `redis://` URI, Redis settings, or a `BucketStore`. */
  readonly store?: FluxGateOptions['store']
  /** IPv6 addresses with the same prefix of this many bits share a key. Default 56. */
  readonly ipv6Prefix?: number
  /** The maximum number of delayed requests; further ones are rejected. Default 100. */
  readonly maxConcurrentWaits?: number
}

/**
 * Distributes over the forms of a rule. The limit may depend on the request. The cost of a request is an option of the HTTP edge,
 * which may be a function too.
 */
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

/** A limit decided by a gate or another handler. */
export type HandledLimit =
  | {
      /** A gate of `createFluxGate`, or another `Handler` such as `HttpHandler`. */
      readonly gate: Handler
      readonly handler?: undefined
    }
  | {
      readonly gate?: undefined
      /** @deprecated Use `gate`. */
      readonly handler: Handler
    }

/** Options of every middleware: the limit, and how requests are read and rejected. */
export type RateLimitOptions<Native = unknown, Reply = unknown> = GuardOptions<Native, Reply> &
  (SingleLimit<Native> | HandledLimit)

/** The gate or handler that decides; undefined for an inline rule. */
export const handlerOf = ({
  gate,
  handler,
}: {
  readonly gate?: Handler | undefined
  readonly handler?: Handler | undefined
}) => gate ?? handler

export interface OwnedGuard<Native, Reply = unknown> {
  readonly guard: Guard<Native, Reply>
  readonly warnings: Warnings
  /** Rejects delayed requests and closes the store if the guard opened it. */
  close(): Promise<void>
}

/** Creates a guard from middleware options. Limits with the same rule set, rule ID and bands share their buckets. */
export function createGuard<Native, Reply>(
  options: RateLimitOptions<Native, Reply>,
  ruleSetId = 'limit',
): OwnedGuard<Native, Reply> {
  checkEdgeOptions(options)
  const given = handlerOf(options)
  if (given !== undefined) {
    requireRuleSet(given, options.ruleSetId)
    const guard = new Guard<Native, Reply>(given, options)
    const stopWarning = warnOfMissingSources(given, options)
    return {
      guard,
      warnings: warningsOf(given, options),
      async close() {
        stopWarning?.()
        guard.close()
      },
    }
  }
  const { edge, limit } = splitOptions(options)
  const warnings = new Warnings(options.logger)
  const { handler, customize, close } = createHandler(limit, edge, ruleSetId, warnings)
  const guard = closeOnError(close, () => new Guard<Native, Reply>(handler, customize ? { ...edge, customize } : edge))
  return {
    guard,
    warnings,
    close() {
      guard.close()
      return close()
    },
  }
}

/**
 * Warns about rules of the gate that count by an identity without a source. Covers only the rule set that decides requests.
 * Other handlers do not expose their rules, so nothing is watched for them.
 */
export function warnOfMissingSources(
  handler: Handler,
  options: IdentitySources & Pick<GuardOptions, 'ruleSetId' | 'logger'>,
): (() => void) | undefined {
  if (!isGate(handler)) return undefined
  const rules: WatchedRules = {
    get ruleSets() {
      return handler.ruleSets
    },
    warnings: warningsOf(handler, options),
    on: (name, listener) => handler.on(name, listener),
  }
  const { ruleSetId } = options
  return watchIdentitySources(rules, options, ({ id }) => id === (ruleSetId ?? handler.defaultRuleSetId))
}

const isGate = (handler: Handler & Partial<FluxGate>): handler is FluxGate =>
  Array.isArray(handler.ruleSets) && handler.on !== undefined && handler.warnings !== undefined

const warningsOf = (handler: Handler, { logger }: Pick<GuardOptions, 'logger'>): Warnings =>
  logger === undefined && isGate(handler) ? handler.warnings : new Warnings(logger)

/** Throws if the gate has rule sets, but not the one that the middleware would apply. */
export function requireRuleSet(handler: Handler, ruleSetId: string | undefined): void {
  if (!isGate(handler)) return
  const { ruleSets, defaultRuleSetId } = handler
  const isKnown = ruleSetId === undefined ? defaultRuleSetId !== undefined : ruleSets.some(({ id }) => id === ruleSetId)
  if (isKnown || ruleSets.length === 0) return
  const message = unknownRuleSet(
    ruleSetId,
    ruleSets.map(({ id }) => id),
  )
  throw new FluxGateError('FLUXGATE_RULE_SET_UNKNOWN', `Options of rateLimit: ${message}`)
}

/** Creates the handler of an inline rule. `customize` replaces the hook of the options if the limit depends on the request. */
function createHandler<Native, Reply>(
  limit: SingleLimit<Native>,
  edge: GuardOptions<Native, Reply>,
  ruleSetId: string,
  warnings: Warnings,
) {
  const { store: storeOption, ipv6Prefix, maxConcurrentWaits = defaultMaxConcurrentWaits, ...document } = limit
  const clock = edge.clock ?? systemClock
  const ofRequest = readRequestLimits(document, edge.customize)
  const rule = ofRequest?.rule ?? parseRule({ id: 'limit', ...document })
  requireSources(rule, edge)
  const fixed = compileSnapshot([{ id: ruleSetId, strategy: 'all', rules: [rule] }], {
    ipv6Prefix,
    resolvers: undefined,
    maxWaitMs: defaultMaxWaitMs,
    resetBucketsOnReload: true,
    resets: () => 0,
  })
  const snapshot = ofRequest?.applyTo(fixed) ?? fixed
  const store = boundedStore(openStore(storeOption, { clock, openRedis: redisStoreLater }))
  const room = new WaitingRoom(maxConcurrentWaits, clock)
  const handler = new StandaloneHandler({
    snapshot,
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
    customize: ofRequest?.customize,
    async close() {
      room.close()
      if (!isStore(storeOption)) await store.close()
    },
  }
}

/** Splits middleware options into options of the HTTP edge and fields of the inline rule. */
export function splitOptions<Native, Reply>(
  options: RateLimitOptions<Native, Reply>,
): {
  edge: GuardOptions<Native, Reply>
  limit: SingleLimit<Native>
} {
  const entries = Object.entries(options)
  return {
    edge: Object.fromEntries(entries.filter(([name]) => isEdgeOption(name))),
    limit: Object.fromEntries(entries.filter(([name]) => !isEdgeOption(name))) as unknown as SingleLimit<Native>,
  }
}
