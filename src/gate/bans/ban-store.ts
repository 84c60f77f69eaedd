import type { BanStorage, KeyBan } from '../../core/bans/ban-storage.js'
import type { BucketGroup } from '../../core/bucket-store.js'
import { ticksPerMs } from '../../core/clock.js'
import type { ActiveBan, BanStore } from '../../core/contracts/ban-store.js'
import { checkKey } from '../../core/decision/check-request.js'
import { FluxGateError } from '../../core/errors.js'
import type { Rule } from '../../core/rule.js'
import { endInvalid, keyOfBan, parseBan } from '../../rules/schema/bans/ban-input.js'
import { isObject } from '../../validation/fields.js'
import { pageArguments, pageCursor } from '../overrides/page-arguments.js'

export interface BanStoreOptions {
  /** Returns the current rule and its buckets. */
  readonly ruleOf: (ruleSetId: string, ruleId: string) => RuleWithGroup | undefined
  readonly ipv6Prefix?: number | undefined
}

interface RuleWithGroup {
  readonly rule: Rule
  readonly group: BucketGroup
}

/** Implements the public API of bans on top of a store: parses documents and validates them against their rule. */
export function banStore(storage: BanStorage, { ruleOf, ipv6Prefix }: BanStoreOptions): BanStore {
  const ruleIn = (ruleSetId: string, ruleId: string): RuleWithGroup => {
    const found = ruleOf(ruleSetId, ruleId)
    if (found !== undefined) return found
    throw new FluxGateError('FLUXGATE_ARGUMENT_INVALID', `Rule "${ruleId}" does not exist in rule set "${ruleSetId}".`)
  }
  /** Undefined for a rule without a ban, and for a key that can have none. */
  const placeOf = (ruleSetId: string, ruleId: string, key: string) => {
    const { rule, group } = ruleIn(ruleSetId, ruleId)
    const parsed = keyOfBan(checkKey(key), rule, ipv6Prefix).key
    return rule.ban === undefined || parsed === undefined ? undefined : { group, key: parsed }
  }
  return {
    async list(ruleSetId, ruleId, query = {}) {
      const { rule, group } = ruleIn(ruleSetId, ruleId)
      const page = pageArguments(query)
      if (rule.ban === undefined) return { items: [], cursor: null }
      const { bans, next } = await storage.list(group, page)
      return { items: bans.map(documentOf), cursor: pageCursor(next) }
    },
    async get(ruleSetId, ruleId, key) {
      const place = placeOf(ruleSetId, ruleId, key)
      const ban = place && (await storage.get(place.group, place.key))
      return ban && documentOf(ban)
    },
    async set(ruleSetId, ruleId, key, input = {}) {
      const { rule, group } = ruleIn(ruleSetId, ruleId)
      const { key: parsed, end } = parseBan(isObject(input) ? { ...input, key } : input, rule, ipv6Prefix)
      const result = await storage.set(group, parsed, end)
      if (result === undefined) throw endInvalid(rule)
      return { ban: documentOf(result.ban), created: result.created }
    },
    async lift(ruleSetId, ruleId, key) {
      const place = placeOf(ruleSetId, ruleId, key)
      return place !== undefined && storage.lift(place.group, place.key)
    },
  }
}

function documentOf({ key, until, count, now }: KeyBan): ActiveBan {
  const untilMs = Math.ceil(until / ticksPerMs)
  return { key, until: new Date(untilMs).toISOString(), retryAfterMs: Math.ceil((until - now) / ticksPerMs), count }
}
