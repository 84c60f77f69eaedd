import type { BucketStore } from '../core/bucket-store.js'
import { systemClock } from '../core/clock.js'
import { messageOf } from '../core/errors.js'
import { unknownResolvers } from '../core/keys/scope-key-resolver.js'
import type { Requirement } from '../rules/requirement.js'
import { RuleBook } from '../rules/rule-book.js'
import { redisStore } from '../stores/redis/redis-store.js'
import type { DecisionObserver } from '../telemetry/decision-observer.js'
import { announcedByStore } from './announced-by-store.js'
import { checkOptions } from './check-options.js'
import { readGateOptions } from './configured-options.js'
import type { FluxGate } from './flux-gate.js'
import { type Closable, Gate } from './gate.js'
import { isRuleStore, openRules } from './open-rules.js'
import { boundedStore, openStore } from './open-store.js'
import type { FluxGateOptions } from './options.js'

/** Rules, buckets and everything between them. A string is the path of a fluxgate.yaml. */
export const createFluxGate = (given: FluxGateOptions | string): Promise<FluxGate> => openGate(given)

export interface GateHooks {
  readonly observer?: DecisionObserver | undefined
  /** Called if the store could not be reached in time; default a warning of the process. */
  readonly onUnreachable?: ((message: string) => void) | undefined
}

/** The same for a program that has telemetry and a log of its own. */
export async function openGate(given: FluxGateOptions | string, hooks: GateHooks = {}): Promise<FluxGate> {
  const { observer, onUnreachable = emitWarning } = hooks
  const options = await readGateOptions(checkOptions(typeof given === 'string' ? { config: given } : given))
  const clock = options.clock ?? systemClock
  const rules = openRules(options.rules)
  const isOwnRules = rules !== options.rules && isRuleStore(rules)
  const opened: Closable[] = isOwnRules ? [rules] : []
  try {
    const announced = announcedByStore(rules, options)
    if (announced !== undefined) opened.push(announced)
    const provider = announced?.rules ?? rules
    // A rule that names a resolver nobody registered is a mistake in the rules.
    const requirement: Requirement = (ruleSets) => unknownResolvers(ruleSets, options.keyResolvers)
    // It is refused when it is put there, too: a rule store would otherwise keep what nobody here can use.
    const free = rules.require?.(requirement)
    if (free !== undefined) opened.push({ close: async () => free() })
    const book = await RuleBook.open(provider, { clock, requirement })
    const { maxKeys, resilience } = options
    const store = openStore(options.store, { clock, maxKeys, resilience, openRedis: redisStore })
    if (store !== options.store) opened.push(store)
    await store.ready?.()
    if (store.isConnected === false) onUnreachable(unreachableMessage(store))
    const bounded = boundedStore(store, { ...resilience, clock })
    return await Gate.open(options, { clock, provider, book, store: bounded, opened, observer })
  } catch (error) {
    for (const one of opened) await one.close()
    throw error
  }
}

const unreachableMessage = ({ unreachable }: BucketStore): string => {
  const reason = unreachable === undefined ? '' : `: ${messageOf(unreachable.cause ?? unreachable)}`
  return `The bucket store could not be reached${reason}. Until it can be, each rule's onStoreFailure applies. Check that Redis is running and that its address is correct.`
}

function emitWarning(message: string): void {
  process.emitWarning(message, { type: 'FluxGateWarning', code: 'FLUXGATE_STORE_UNREACHABLE' })
}
