import { takeHolds } from '../../../core/algorithm-traits.js'
import type { Override } from '../../../core/contracts/override-store.js'
import { describeValue, FluxGateError } from '../../../core/errors.js'
import { cidrText, ipIdentity, parseCidr } from '../../../core/keys/ip-address.js'
import type { OverrideTerms, StartingBalance } from '../../../core/overrides/override-storage.js'
import { type Band, maxCapacity, type Rule } from '../../../core/rule.js'
import { type Fields, openFields } from '../../../validation/fields.js'
import { noIssues, rulesInvalid } from '../../../validation/issues.js'
import { described, type Kind } from '../../../validation/kind.js'
import { boundedText, instant, oneOf, wholeNumber } from '../../../validation/kinds.js'
import { bandList } from '../fields/band-schema.js'
import { calendarDocument, withRuleCalendars } from '../fields/calendar-schema.js'
import { readBands } from '../rule-schema.js'

/** The smallest accepted epoch time in milliseconds (March 1973). A smaller number is probably in seconds. */
const minEpochMs = 100_000_000_000
const maxEpochMs = 8_640_000_000_000_000

/** A point in time, parsed to epoch milliseconds. */
export const timeKind = (description: string): Kind<number> => ({
  allowed: `${instant.allowed}, or epoch milliseconds`,
  schema: {
    anyOf: [instant.schema, { type: 'integer', minimum: minEpochMs, maximum: maxEpochMs }],
    description: `${description} RFC 3339, or epoch milliseconds.`,
  },
  parse(value) {
    const ms = typeof value === 'number' ? value : Date.parse(instant.parse(value) ?? '')
    const isInRange = typeof value !== 'number' || (ms >= minEpochMs && ms <= maxEpochMs)
    return Number.isInteger(ms) && isInRange ? ms : undefined
  },
})

export const expiryDescription = 'Expiry time. After it, the rule applies unchanged.'
export const balanceAtDescription = 'The time of `balance`, not in the future. Default: the time of the request.'
export const overrideKeyKind = boundedText(1, 1_024)

/** The fields of an override. */
export const overrideKinds = {
  key: described(overrideKeyKind, 'The key that is limited. For rules of scope IP, also a range such as `10.0.0.0/8`.'),
  action: described(
    oneOf(['LIMIT', 'ALLOW', 'DENY'] as const),
    'LIMIT: use other bands. ALLOW: no limit. DENY: reject every request.',
  ),
  bands: described(bandList, "LIMIT: replaces the rule's bands. Optional if `balance` is given."),
  expiresAt: timeKind(expiryDescription),
  note: described(boundedText(0, 1_000), 'Free text.'),
  balance: described(
    wholeNumber(0, maxCapacity),
    'LIMIT: starting balance. Permits left in each band at `balanceAt`, instead of a full bucket.',
  ),
  balanceAt: timeKind(balanceAtDescription),
}

export interface ParsedOverride extends OverrideKey {
  readonly terms: OverrideTerms
}

export interface OverrideKey {
  readonly key: string
  readonly isRange: boolean
}

/** Reads an override of a rule as of `nowMs`. Throws `FLUXGATE_OVERRIDE_INVALID` with every issue. */
export function parseOverride(document: unknown, rule: Rule, nowMs: number, ipv6Prefix = 56): ParsedOverride {
  const issues = noIssues()
  const fields = openFields(document, '', overrideKinds, 'an override: { key, action, … }', issues)
  const result = fields && readOverride(fields, rule, nowMs, ipv6Prefix)
  const bands = fields?.has('bands') ? withRuleCalendars(readBands(fields, algorithmOf(rule)), rule.bands, fields) : []
  if (fields !== undefined) checkHolds(fields, rule, bands)
  if (result !== undefined && issues.count === 0)
    return { ...result, terms: { ...result.terms, bands } } as ParsedOverride
  const { message, errors } = rulesInvalid('The override', issues)
  throw new FluxGateError('FLUXGATE_OVERRIDE_INVALID', message, { errors })
}

/** A decision takes a hold only if its rule does, and a hold cannot be taken in advance. */
function checkHolds(fields: Fields<typeof overrideKinds>, rule: Rule, bands: readonly Band[]): void {
  if (takeHolds(bands) && !takeHolds(rule.bands))
    fields.report('bands', `must not have the algorithm CONCURRENCY, because rule ${rule.id} has no such band`)
  if (fields.has('balance') && takeHolds(bands.length > 0 ? bands : rule.bands))
    fields.report('balance', 'must be omitted with CONCURRENCY, which counts requests in progress')
}

/** A band without an algorithm uses the algorithm of the first band of the rule. */
const algorithmOf = ({ bands: [first] }: Rule) => first?.algorithm ?? 'TOKEN_BUCKET'

function readOverride(fields: Fields<typeof overrideKinds>, rule: Rule, nowMs: number, ipv6Prefix: number) {
  const received = fields.require('key')
  const action = fields.require('action')
  const expiresAtMs = fields.read('expiresAt')
  const note = fields.read('note')
  const balance = readBalance(fields, nowMs)
  if (action === 'LIMIT' && !fields.has('bands') && !fields.has('balance'))
    fields.report('bands', 'must be a list of 1 to 8 bands with LIMIT, unless there is a balance; received nothing')
  if (action !== 'LIMIT' && action !== undefined)
    for (const name of ['bands', 'balance'])
      if (fields.has(name)) fields.report(name, `must be omitted with ${action}; ${name} requires LIMIT`)
  const key = received === undefined ? undefined : overrideKey(received, rule, ipv6Prefix)
  if (typeof key === 'string') fields.report('key', key)
  const terms = { action, expiresAtMs, note, ...(balance !== undefined && { balance }) }
  return typeof key === 'object' ? { ...key, terms } : undefined
}

/** The permits available at `balanceAt`, which defaults to now. */
function readBalance(fields: Fields<typeof overrideKinds>, nowMs: number): StartingBalance | undefined {
  const permits = fields.read('balance')
  const at = fields.read('balanceAt')
  if (fields.has('balanceAt') && !fields.has('balance')) fields.report('balanceAt', 'must be combined with balance')
  const atMs = at ?? Math.floor(nowMs)
  if (atMs > nowMs) fields.report('balanceAt', `must not be in the future; received ${new Date(atMs).toISOString()}`)
  return permits === undefined ? undefined : { permits, atMs }
}

/**
 * Normalizes a key to the form that the rule uses for its buckets; addresses have several spellings. Returns a message if
 * the key is invalid.
 */
export function overrideKey(received: string, { id, limitScope }: Rule, ipv6Prefix = 56): OverrideKey | string {
  if (limitScope !== 'IP') return { key: received, isRange: false }
  const network = parseCidr(received)
  if (network === undefined && received.includes('/'))
    return `must be an IP address, or a range such as 10.0.0.0/8 or 2001:db8::/32; received ${JSON.stringify(received)}`
  // Any other text may be a key that the application passes in place of the address, or that of requests without one.
  if (network === undefined && isMeantAsAddress(received))
    return `must be an address such as 203.0.113.7 or 2001:db8::7, because rule ${id} counts addresses; received ${describeValue(received)}`
  if (network === undefined) return { key: received, isRange: false }
  const normalized = cidrText(network)
  const [address = '', length = ''] = normalized.split('/')
  const whole = address.includes(':') ? ipv6Prefix : 32
  if (!received.includes('/') || (whole === 32 && length === '32'))
    return { key: ipIdentity(address, ipv6Prefix), isRange: false }
  if (Number(length) > whole)
    return `must have a prefix length of at most ${whole}, because IPv6 keys use the first ${whole} bits; received ${JSON.stringify(received)}`
  if (Number(length) === whole) return { key: ipIdentity(address, ipv6Prefix), isRange: false }
  return { key: normalized, isRange: true }
}

/** IPv4 with a number that is too large, a wildcard, a port or a second address; IPv6 in brackets, or with too many groups. */
const malformedAddress =
  /^(?:(?:\d+|\*)(?:\.(?:\d+|\*)){3}(?::\d+|\s*-.*)?|\[[\da-f:.]*\](?::\d+)?|(?=.*::|(?:[^:]*:){7})[\da-f:.]+)$/i

/** True for text that is no address but can hardly be anything else. */
const isMeantAsAddress = (text: string): boolean =>
  malformedAddress.test(text.trim()) || (text !== text.trim() && parseCidr(text.trim()) !== undefined)

/** Converts an override back to a document. */
export function overrideDocument(
  key: string,
  { action, bands, expiresAtMs, note, balance }: OverrideTerms,
  rule: Rule,
): Override {
  return {
    key,
    action,
    ...(bands.length > 0 && { bands: bands.map((band) => bandDocument(band, rule)) }),
    ...(balance && { balance: balance.permits, balanceAt: new Date(balance.atMs).toISOString() }),
    ...(expiresAtMs !== undefined && { expiresAt: new Date(expiresAtMs).toISOString() }),
    ...(note !== undefined && { note }),
  }
}

function bandDocument({ label, algorithm, refill, capacity, refillTokens, windowTicks, calendarOf }: Band, rule: Rule) {
  const calendar = calendarOf === undefined ? undefined : rule.bands[calendarOf]?.calendar
  if (calendar !== undefined) return { label, algorithm, capacity, ...calendarDocument(calendar) }
  if (algorithm === 'CONCURRENCY') return { label, algorithm, capacity, maxHold: `${windowTicks / 1_000}ms` }
  return {
    label,
    algorithm,
    capacity,
    refillTokens,
    refillSeconds: windowTicks / 1_000_000,
    ...(refill === 'INTERVAL' && { refill }),
  }
}
