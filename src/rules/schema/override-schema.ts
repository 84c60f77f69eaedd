import { FluxGateError } from '../../core/errors.js'
import { cidrText, ipIdentity, parseCidr } from '../../core/keys/ip-address.js'
import type { Override } from '../../core/override-store.js'
import type { OverrideTerms, StartingBalance } from '../../core/overrides/override-storage.js'
import { type Band, maxCapacity, type Rule } from '../../core/rule.js'
import { type Fields, type Kind, openFields } from '../../validation/fields.js'
import { noIssues, rulesInvalid } from '../../validation/issues.js'
import { instant, oneOf, text, wholeNumber } from '../../validation/kinds.js'
import { readBands } from './rule-schema.js'

/** The fields of an override. */
const overrideFields: readonly string[] = ['key', 'action', 'bands', 'expiresAt', 'note', 'balance', 'balanceAt']

export const longestKey = 1_024
export const longestNote = 1_000
const actionKind = oneOf(['LIMIT', 'ALLOW', 'DENY'] as const)
const balanceKind = wholeNumber(0, maxCapacity)
/** The smallest accepted epoch time in milliseconds (March 1973). A smaller number is probably in seconds. */
export const leastMs = 100_000_000_000
const momentKind: Kind<number> = {
  allowed: `${instant.allowed}, or epoch milliseconds`,
  parse(value) {
    const found = typeof value === 'number' ? value : Date.parse(instant.parse(value) ?? '')
    const isMoment = Number.isInteger(found) && (typeof value !== 'number' || (found >= leastMs && found <= 8.64e15))
    return isMoment ? found : undefined
  },
}
const noteKind = { allowed: `a string of at most ${longestNote} characters`, parse: bounded(longestNote, 0) }
const keyKind = { allowed: `a string of 1 to ${longestKey} characters`, parse: bounded(longestKey, 1) }

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
  const fields = openFields(document, '', overrideFields, 'an override: { key, action, … }', issues)
  const result = fields && readOverride(fields, rule, nowMs, ipv6Prefix)
  const bands = fields?.has('bands') ? readBands(fields, algorithmOf(rule), issues) : []
  if (result !== undefined && issues.count === 0)
    return { ...result, terms: { ...result.terms, bands } } as ParsedOverride
  const { message, errors } = rulesInvalid('The override', issues)
  throw new FluxGateError('FLUXGATE_OVERRIDE_INVALID', message, { errors })
}

/** A band without an algorithm uses the algorithm of the first band of the rule. */
const algorithmOf = ({ bands: [first] }: Rule) => first?.algorithm ?? 'TOKEN_BUCKET'

function readOverride(fields: Fields, rule: Rule, nowMs: number, ipv6Prefix: number) {
  const given = fields.require('key', keyKind)
  const action = fields.require('action', actionKind)
  const expiresAtMs = fields.read('expiresAt', momentKind)
  const note = fields.read('note', noteKind)
  const balance = readBalance(fields, nowMs)
  if (action === 'LIMIT' && !fields.has('bands') && !fields.has('balance'))
    fields.wrong('bands', 'must be a list of 1 to 8 bands with LIMIT, unless there is a balance; received nothing')
  if (action !== 'LIMIT' && action !== undefined)
    for (const name of ['bands', 'balance'])
      if (fields.has(name)) fields.wrong(name, `must be omitted with ${action}; ${name} requires LIMIT`)
  const key = given === undefined ? undefined : overrideKey(given, rule, ipv6Prefix)
  if (typeof key === 'string') fields.wrong('key', key)
  const terms = { action, expiresAtMs, note, ...(balance !== undefined && { balance }) }
  return typeof key === 'object' ? { ...key, terms } : undefined
}

/** The permits available at `balanceAt`, which defaults to now. */
function readBalance(fields: Fields, nowMs: number): StartingBalance | undefined {
  const permits = fields.read('balance', balanceKind)
  const at = fields.read('balanceAt', momentKind)
  if (fields.has('balanceAt') && !fields.has('balance')) fields.wrong('balanceAt', 'must be combined with balance')
  const atMs = at ?? Math.floor(nowMs)
  if (atMs > nowMs) fields.wrong('balanceAt', `must not be in the future; received ${new Date(atMs).toISOString()}`)
  return permits === undefined ? undefined : { permits, atMs }
}

/**
 * Normalizes a key to the form that the rule uses for its buckets; addresses have several spellings. Returns a message if
 * the key is invalid.
 */
export function overrideKey(given: string, { limitScope }: Rule, ipv6Prefix = 56): OverrideKey | string {
  if (limitScope !== 'IP') return { key: given, isRange: false }
  const network = parseCidr(given)
  if (network === undefined && given.includes('/'))
    return `must be an IP address, or a range such as 10.0.0.0/8 or 2001:db8::/32; received ${JSON.stringify(given)}`
  if (network === undefined) return { key: given, isRange: false }
  const normalized = cidrText(network)
  const [address = '', length = ''] = normalized.split('/')
  const whole = address.includes(':') ? ipv6Prefix : 32
  if (!given.includes('/') || (whole === 32 && length === '32'))
    return { key: ipIdentity(address, ipv6Prefix), isRange: false }
  if (Number(length) > whole)
    return `must have a prefix length of at most ${whole}, because IPv6 keys use the first ${whole} bits; received ${JSON.stringify(given)}`
  if (Number(length) === whole) return { key: ipIdentity(address, ipv6Prefix), isRange: false }
  return { key: normalized, isRange: true }
}

/** Converts an override back to a document. */
export function overrideDocument(key: string, { action, bands, expiresAtMs, note, balance }: OverrideTerms): Override {
  return {
    key,
    action,
    ...(bands.length > 0 && { bands: bands.map(bandDocument) }),
    ...(balance && { balance: balance.permits, balanceAt: new Date(balance.atMs).toISOString() }),
    ...(expiresAtMs !== undefined && { expiresAt: new Date(expiresAtMs).toISOString() }),
    ...(note !== undefined && { note }),
  }
}

function bandDocument({ label, algorithm, refill, capacity, refillTokens, windowTicks }: Band) {
  return {
    label,
    algorithm,
    capacity,
    refillTokens,
    refillSeconds: windowTicks / 1_000_000,
    ...(refill === 'INTERVAL' && { refill }),
  }
}

function bounded(longest: number, shortest: number) {
  return (value: unknown): string | undefined => {
    const found = text.parse(value)
    return found !== undefined && found.length >= shortest && found.length <= longest ? found : undefined
  }
}
