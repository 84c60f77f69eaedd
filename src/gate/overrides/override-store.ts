import type { Clock } from '../../core/clock.js'
import type { Override, OverrideStore } from '../../core/contracts/override-store.js'
import { FluxGateError } from '../../core/errors.js'
import type { OverrideStorage } from '../../core/overrides/override-storage.js'
import type { Rule } from '../../core/rule.js'
import { overrideDocument, overrideKey, parseOverride } from '../../rules/schema/overrides/override-schema.js'
import { pageArguments, pageCursor } from './page-arguments.js'

export interface OverrideStoreOptions {
  /** Returns the current rule. */
  readonly ruleOf: (ruleSetId: string, ruleId: string) => Rule | undefined
  readonly ipv6Prefix?: number | undefined
  readonly clock: Clock
}

/** Implements the public override API on top of a store: parses documents and validates them against their rule. */
export function overrideStore(
  storage: OverrideStorage,
  { ruleOf, ipv6Prefix, clock }: OverrideStoreOptions,
): OverrideStore {
  const ruleIn = (ruleSetId: string, ruleId: string): Rule => {
    const rule = ruleOf(ruleSetId, ruleId)
    if (rule !== undefined) return rule
    throw invalid(`Rule "${ruleId}" does not exist in rule set "${ruleSetId}".`)
  }
  /** Undefined if the key is invalid, so that no override can exist for it. */
  const idOf = (ruleSetId: string, ruleId: string, key: string) => {
    const parsed = overrideKey(key, ruleIn(ruleSetId, ruleId), ipv6Prefix)
    return typeof parsed === 'string' || key === '' ? undefined : { ruleSetId, ruleId, ...parsed }
  }
  return {
    async list(ruleSetId, ruleId, query = {}) {
      const rule = ruleIn(ruleSetId, ruleId)
      const { entries, next } = await storage.list(ruleSetId, ruleId, pageArguments(query))
      const items: Override[] = entries.map(({ key, terms }) => overrideDocument(key, terms, rule))
      return { items, cursor: pageCursor(next) }
    },
    async get(ruleSetId, ruleId, key) {
      const id = idOf(ruleSetId, ruleId, key)
      const terms = id && (await storage.get(id))
      return terms && overrideDocument(id.key, terms, ruleIn(ruleSetId, ruleId))
    },
    async put(ruleSetId, ruleId, override) {
      const rule = ruleIn(ruleSetId, ruleId)
      if (!rule.overrides)
        throw invalid(
          `Rule "${ruleId}" of rule set "${ruleSetId}" ignores overrides. Set overrides: true in the rule first.`,
        )
      const { key, isRange, terms } = parseOverride(override, rule, clock.now(), ipv6Prefix)
      return { created: await storage.put({ ruleSetId, ruleId, key, isRange }, terms) }
    },
    async delete(ruleSetId, ruleId, key) {
      const id = idOf(ruleSetId, ruleId, key)
      return id !== undefined && storage.delete(id)
    },
  }
}

const invalid = (message: string): FluxGateError => new FluxGateError('FLUXGATE_ARGUMENT_INVALID', message)
