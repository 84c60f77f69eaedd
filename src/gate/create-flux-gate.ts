import type { StoreAvailability } from '../core/bucket-store.js'
import { systemClock } from '../core/clock.js'
import { messageOf } from '../core/errors.js'
import { unknownResolvers } from '../core/keys/scope-key-resolver.js'
import type { RuleRequirement } from '../rules/check-provided-rules.js'
import { LoadedRules } from '../rules/loaded-rules.js'
import { redisStore } from '../stores/redis/redis-store.js'
import { Warnings } from '../validation/warnings.js'
import { checkOptions } from './check-options.js'
import { readGateOptions } from './configured-options.js'
import type { FluxGate } from './flux-gate.js'
import { Gate } from './gate.js'
import type { Closable } from './gate-parts.js'
import { announcedByStore } from './generations/announced-by-store.js'
import { isRuleStore, openRules } from './open-rules.js'
import { boundedStore, isStore, openStore } from './open-store.js'
import type { FluxGateOptions } from './options.js'
import { redisByUri } from './redis-by-uri.js'
import { type GivenObserver, openObserver } from './reporting/open-observer.js'

/**
 * Creates a gate, which applies rules to requests. Resolves once the rules are loaded and the bucket store is connected. If the
 * store cannot be reached in time, resolves anyway and emits a process warning; each rule's `onStoreFailure` then applies until
 * the store recovers.
 *
 * @param options the options, or the path of a `fluxgate.yaml`
 * @throws FluxGateError if the options or rules are invalid, or if Redis rejects the connection
 * @example
 * const gate = await createFluxGate({ rules: './rules.yaml', store: 'redis://127.0.0.1:6379' })
 * const decision = await gate.check({ clientIp: '203.0.113.7', method: 'GET', path: '/api/users' })
 * if (!decision.allowed) console.log(`retry after ${decision.retryAfterMs} ms`)
 */
export const createFluxGate = (options: FluxGateOptions | string): Promise<FluxGate> => openGate(options)

export interface GateHooks extends GivenObserver {
  /** Called if the store could not be reached in time. Default: emits a process warning. */
  readonly onUnreachable?: ((message: string) => void) | undefined
}

/** Creates a gate for a program with its own telemetry and log. */
export async function openGate(input: FluxGateOptions | string, hooks: GateHooks = {}): Promise<FluxGate> {
  const options = await readGateOptions(checkOptions(typeof input === 'string' ? { config: input } : input))
  const clock = options.clock ?? systemClock
  const warnings = new Warnings(options.logger)
  const { onUnreachable = (message) => warnings.warn('FLUXGATE_STORE_UNREACHABLE', message) } = hooks
  const rules = openRules(options.rules)
  const isOwnRules = rules !== options.rules && isRuleStore(rules)
  const opened: Closable[] = isOwnRules ? [rules] : []
  try {
    const announced = announcedByStore(rules, options)
    if (announced !== undefined) opened.push(announced)
    const provider = announced?.rules ?? rules
    // A rule with an unregistered key resolver is invalid.
    const requirement: RuleRequirement = (ruleSets) => unknownResolvers(ruleSets, options.keyResolvers)
    // The rule store rejects such rules on edit too, so that it never holds rules that this process cannot load.
    const free = rules.require?.(requirement)
    if (free !== undefined) opened.push({ close: async () => free() })
    const loadedRules = await LoadedRules.open(provider, { clock, requirement })
    const { maxKeys, maxReservations, resilience } = options
    const openRedis = redisByUri(redisStore)
    const store = openStore(options.store, { clock, maxKeys, maxReservations, resilience, openRedis })
    if (!isStore(options.store)) opened.push(store)
    await store.availability?.ready?.()
    if (store.availability?.isConnected === false) onUnreachable(unreachableMessage(store.availability))
    const bounded = boundedStore(store, { ...resilience, clock })
    const ruleStore = isRuleStore(rules) ? rules : undefined
    const observing = await openObserver(options.metrics === true, clock, hooks)
    opened.push(observing)
    const { metrics, observer } = observing
    const parts = { clock, provider, loadedRules, store: bounded, opened, observer, warnings, ruleStore }
    const gate = await Gate.open(options, { ...parts, metrics: options.metrics === true ? metrics : undefined })
    metrics?.follow(gate)
    return gate
  } catch (error) {
    for (const one of opened) await one.close()
    throw error
  }
}

const unreachableMessage = ({ unreachable }: StoreAvailability): string => {
  const reason = unreachable === undefined ? '' : `: ${messageOf(unreachable.cause ?? unreachable)}`
  return `Cannot reach the bucket store${reason}. Each rule's onStoreFailure applies until it recovers. Check that Redis is running and that its address is correct.`
}
