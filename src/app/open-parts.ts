import type { BucketStore } from '../core/bucket-store.js'
import type { Clock } from '../core/clock.js'
import { FluxGateError } from '../core/errors.js'
import type { RuleSetProvider } from '../core/rule-set-provider.js'
import { fileRules } from '../rules/file-provider.js'
import { objectRules } from '../rules/object-provider.js'
import { memoryStore } from '../stores/memory.js'
import type { FluxGateOptions } from './gate-options.js'

export function openRules(rules: FluxGateOptions['rules']): RuleSetProvider {
  if (typeof rules === 'string') return fileRules(rules)
  if (isProvider(rules)) return rules
  if (rules !== undefined) return objectRules(rules)
  throw new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    "createFluxGate needs rules: a path such as './rules.yaml', rule sets as objects, or a RuleSetProvider.",
  )
}

/** Whether rules may change without anybody asking for a reload: objects do not. */
export const canChange = (rules: FluxGateOptions['rules']): boolean => typeof rules === 'string' || isProvider(rules)

export function openStore({ store, maxKeys }: FluxGateOptions, clock: Clock): BucketStore {
  if (store === undefined || store === 'memory')
    return memoryStore({ clock, ...(maxKeys !== undefined && { maxKeys }) })
  if (isStore(store)) return store
  throw new FluxGateError(
    'FLUXGATE_CONFIG_INVALID',
    `store: found ${typeof store === 'string' ? `"${store}"` : typeof store}; allowed: "memory", or an object that implements BucketStore.`,
  )
}

/** Whether this is a store, as far as can be seen. */
export const isStore = (store: unknown): store is BucketStore =>
  typeof store === 'object' && store !== null && 'charge' in store && typeof store.charge === 'function'

const isProvider = (rules: FluxGateOptions['rules']): rules is RuleSetProvider =>
  typeof rules === 'object' && 'load' in rules && typeof rules.load === 'function'
