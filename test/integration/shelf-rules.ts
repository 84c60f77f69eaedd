import type { RuleStore } from '../../src/core/rule-store.js'
import type { Kept, KeptRuleSet, NumberedEntry } from '../../src/rules/store/rule-storage.js'
import { ruleStoreOf } from '../../src/rules/store/rule-store-of.js'

/** A rule store that keeps rules in this process: what every rule store has in common, around the least of all places. */
export function shelfRules(): RuleStore {
  const sets = new Map<string, Kept>()
  const entries = new Map<string, NumberedEntry[]>()
  const nothing: Kept = { version: 0, removedVersion: 0, rules: [] }
  return ruleStoreOf({
    source: 'a shelf',
    read: async (id) => sets.get(id) ?? nothing,
    readAll: async () => [...sets.values()].filter((kept): kept is KeptRuleSet => kept.head !== undefined),
    async commit({ ruleSetId, from, after, entry }) {
      if ((sets.get(ruleSetId) ?? nothing).version !== from) return false
      sets.set(ruleSetId, after)
      entries.set(ruleSetId, [{ setVersion: after.version, entry }, ...(entries.get(ruleSetId) ?? [])])
      return true
    },
    async history(id, below, limit) {
      return (entries.get(id) ?? []).filter(({ setVersion }) => setVersion < below).slice(0, limit)
    },
    async close() {},
  })
}
