import { systemClock } from '../core/clock.js'
import { FluxGateError } from '../core/errors.js'
import type { Handler } from '../core/handler.js'
import type { RuleSet } from '../core/rule.js'
import { compileSnapshot } from '../core/snapshot.js'
import { defaultMaxConcurrentWaits, defaultMaxWaitMs, WaitingRoom } from '../core/waiting-room.js'
import { StandaloneHandler } from '../handlers/standalone.js'
import { Guard, type GuardOptions } from '../http/guard.js'
import type { LoneRuleInput } from '../rules/input.js'
import { parseRule } from '../rules/schema.js'
import { memoryStore } from '../stores/memory.js'
import type { FluxGateOptions } from './gate-options.js'
import { boundedStore, isStore, openStore } from './open-parts.js'

/** One rule of its own: `{ capacity: 100, window: '1m' }`, or any field of a rule. */
export interface LoneLimit extends Omit<LoneRuleInput, 'permits'> {
  readonly handler?: undefined
  /** Where buckets live: in this process unless said otherwise, in Redis by its URI, or a store. */
  readonly store?: FluxGateOptions['store']
  /** IPv6 addresses that share this many bits count as one; default 56. */
  readonly ipv6Prefix?: number
  /** How many requests may be held at once; default 100. */
  readonly maxConcurrentWaits?: number
}

/** Rules that are kept elsewhere: a gate, or anything else that answers. */
export interface HandledLimit {
  readonly handler: Handler
}

/** What every middleware takes: who decides, and how requests are read and answered. */
export type RateLimitOptions<Native = unknown> = GuardOptions<Native> & (LoneLimit | HandledLimit)

export interface OwnedGuard<Native> {
  readonly guard: Guard<Native>
  /** Sends those away who are held, and closes what was made here. */
  close(): Promise<void>
}

const ruleSetId = 'limit'

export function guardOf<Native>(options: RateLimitOptions<Native>): OwnedGuard<Native> {
  if (options?.handler !== undefined)
    return { guard: new Guard(checkHandler(options.handler), options), close: async () => {} }
  const { edge, limit } = divided(options)
  const clock = options.clock ?? systemClock
  const { store: given, ipv6Prefix, maxConcurrentWaits = defaultMaxConcurrentWaits, ...document } = limit
  const rule = parseRule({ id: 'limit', ...document })
  const ruleSet: RuleSet = { id: ruleSetId, strategy: 'all', rules: [rule] }
  const snapshot = compileSnapshot([ruleSet], {
    ipv6Prefix,
    resolvers: undefined,
    maxWaitMs: defaultMaxWaitMs,
    resetBucketsOnReload: true,
    resets: () => 0,
  })
  const store = boundedStore(openStore(given, { clock }))
  const room = new WaitingRoom(maxConcurrentWaits, clock)
  const handler = new StandaloneHandler({
    snapshot: () => snapshot,
    store,
    localStore: memoryStore({ clock }),
    room,
    clock,
    missingRuleBehavior: 'ALLOW',
    onStoreFailure: 'LOCAL',
    localShare: 1,
  })
  return {
    guard: new Guard(handler, edge),
    async close() {
      room.close()
      if (!isStore(given)) await store.close()
    },
  }
}

/** Names that belong to the guard; all others are fields of the rule. */
const edgeNames = [
  'ruleSetId',
  'permits',
  'trustedProxies',
  'clientIpHeader',
  'includePatterns',
  'excludePatterns',
  'userIdHeader',
  'apiKeyHeader',
  'headers',
  'skip',
  'customize',
  'clock',
] as const satisfies readonly (keyof GuardOptions)[]

function divided<Native>(options: GuardOptions<Native> & LoneLimit): { edge: GuardOptions<Native>; limit: LoneLimit } {
  const isEdge = (name: string): boolean => (edgeNames as readonly string[]).includes(name)
  const entries = Object.entries(options ?? {})
  return {
    edge: Object.fromEntries(entries.filter(([name]) => isEdge(name) && name !== 'ruleSetId')),
    limit: Object.fromEntries(entries.filter(([name]) => !isEdge(name))) as unknown as LoneLimit,
  }
}

function checkHandler(handler: Handler): Handler {
  if (typeof handler === 'object' && handler !== null && typeof handler.check === 'function') return handler
  throw new FluxGateError(
    'FLUXGATE_ARGUMENT_INVALID',
    'handler must be a gate, as `await createFluxGate(…)` gives it, or an object that implements Handler.',
  )
}
