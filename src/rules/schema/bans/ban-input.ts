import type { BanEnd } from '../../../core/bans/ban-storage.js'
import { ticksPerMs } from '../../../core/clock.js'
import { FluxGateError } from '../../../core/errors.js'
import { maxWindowTicks, minWindowTicks, type Rule } from '../../../core/rule.js'
import { openFields } from '../../../validation/fields.js'
import { noIssues, rulesInvalid, type ValidationIssues } from '../../../validation/issues.js'
import { described } from '../../../validation/kind.js'
import { duration } from '../../../validation/kinds.js'
import { overrideKey, overrideKeyKind, timeKind } from '../overrides/override-schema.js'

/** The fields of a ban that is set by hand. */
export const banInputKinds = {
  key: described(overrideKeyKind, 'The key that is banned. For rules of scope IP, an address.'),
  for: described(
    duration(minWindowTicks, maxWindowTicks),
    "The length of the ban, at most `max` of the rule's ban. Default: `for` of the rule's ban.",
  ),
  until: timeKind('The end of the ban, in place of `for`.'),
}

export interface ParsedBan {
  readonly key: string
  readonly end: BanEnd
}

/** Reads a ban of a key by a rule. Throws `FLUXGATE_BAN_INVALID` with every issue. */
export function parseBan(document: unknown, rule: Rule, ipv6Prefix?: number): ParsedBan {
  const issues = noIssues()
  const fields = openFields(document, '', banInputKinds, 'a ban: { key, for, until }', issues)
  const received = fields?.require('key')
  const [forMs, untilMs] = [fields?.read('for'), fields?.read('until')]
  const key = received === undefined ? undefined : keyOfBan(received, rule, ipv6Prefix)
  if (key !== undefined && key.problem !== undefined) fields?.report('key', key.problem)
  const { ban } = rule
  if (ban === undefined)
    issues.add(
      'ruleId',
      `must be a rule with a ban; rule ${rule.id} has none. Add ban to the rule, or use an override with action DENY`,
    )
  else if (forMs !== undefined && forMs * ticksPerMs > ban.maxTicks)
    fields?.report('for', tooLong(ban.maxTicks, forMs * ticksPerMs))
  if (fields?.has('for') && fields.has('until')) fields.report('until', 'must not be combined with for')
  if (key?.key === undefined || ban === undefined || issues.count > 0) throw banInvalid(issues)
  const forTicks = forMs === undefined ? ban.forTicks : forMs * ticksPerMs
  return { key: key.key, end: untilMs === undefined ? { forTicks } : { until: untilMs * ticksPerMs } }
}

/** The error for an end that the store has rejected by its clock. */
export function endInvalid({ ban }: Rule): FluxGateError {
  const issues = noIssues()
  const longest = seconds(ban?.maxTicks ?? 0)
  issues.add('until', `must be in the future, and at most ${longest} from now, which is max of the rule's ban`)
  return banInvalid(issues)
}

function banInvalid(issues: ValidationIssues): FluxGateError {
  const { message, errors } = rulesInvalid('The ban', issues)
  return new FluxGateError('FLUXGATE_BAN_INVALID', message, { errors })
}

/** Normalizes a key to the form that the rule uses for its buckets, or returns a problem. A ban is for a single key. */
export function keyOfBan(
  received: string,
  rule: Rule,
  ipv6Prefix?: number,
): { readonly key: string; readonly problem?: undefined } | { readonly key?: undefined; readonly problem: string } {
  if (/\p{Surrogate}/u.test(received)) return { problem: 'must be valid Unicode; received a lone surrogate' }
  const parsed = overrideKey(received, rule, ipv6Prefix)
  if (typeof parsed === 'string') return { problem: parsed }
  if (!parsed.isRange) return { key: parsed.key }
  return {
    problem: `must be a single address; received ${JSON.stringify(received)}. Use an override with action DENY for a range`,
  }
}

const tooLong = (longest: number, received: number): string =>
  `must be at most ${seconds(longest)}, which is max of the rule's ban; received ${seconds(received)}`

const seconds = (ticks: number): string => `${ticks / 1_000 / ticksPerMs}s`
