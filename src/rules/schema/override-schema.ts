import { FluxGateError } from '../../core/errors.js'
import { cidrText, ipIdentity, parseCidr } from '../../core/keys/ip-address.js'
import type { Override } from '../../core/override-store.js'
import type { OverrideTerms, StartingBalance } from '../../core/overrides/override-book.js'
import { type Band, maxCapacity, type Rule } from '../../core/rule.js'
import { type Fields, type Kind, openFields } from '../../validation/fields.js'
import { noMistakes, rulesInvalid } from '../../validation/issues.js'
import { instant, oneOf, text, wholeNumber } from '../../validation/kinds.js'
import { readBands } from './rule-schema.js'

/** What an override may say. */
const overrideFields: readonly string[] = ['key', 'action', 'bands', 'expiresAt', 'note', 'balance', 'balanceAt']

export const longestKey = 1_024
export const longestNote = 1_000
const actionKind = oneOf(['LIMIT', 'ALLOW', 'DENY'] as const)
const balanceKind = wholeNumber(0, maxCapacity)
/** Epoch milliseconds, as instants of decisions are; below this, somebody meant seconds. */
export const leastMs = 100_000_000_000
const momentKind: Kind<number> = {
  allowed: `${instant.allowed}, or epoch milliseconds`,
  parse(value) {
    const found = typeof value === 'number' ? value : Date.parse(instant.parse(value) ?? '')
    const isMoment = Number.isInteger(found) && (typeof value !== 'number' || (found >= leastMs && found <= 8.64e15))
    return isMoment ? found : undefined
  },
}
const noteKind = { allowed: `text of at most ${longestNote} characters`, parse: bounded(longestNote, 0) }
const keyKind = { allowed: `an identity: text of 1 to ${longestKey} characters`, parse: bounded(longestKey, 1) }

export interface ParsedOverride extends OverrideKey {
  readonly terms: OverrideTerms
}

export interface OverrideKey {
  readonly key: string
  readonly isRange: boolean
}

/** Reads an override of a rule as of `nowMs`; throws FLUXGATE_OVERRIDE_INVALID with every mistake. */
export function parseOverride(document: unknown, rule: Rule, nowMs: number, ipv6Prefix = 56): ParsedOverride {
  const mistakes = noMistakes()
  const fields = openFields(document, '', overrideFields, 'an override: { key, action, … }', mistakes)
  const result = fields && readOverride(fields, rule, nowMs, ipv6Prefix)
  const bands = fields?.has('bands') ? readBands(fields, algorithmOf(rule), mistakes) : []
  if (result !== undefined && mistakes.count === 0)
    return { ...result, terms: { ...result.terms, bands } } as ParsedOverride
  const { message, errors } = rulesInvalid('The override', mistakes)
  throw new FluxGateError('FLUXGATE_OVERRIDE_INVALID', message, { errors })
}

/** A band of an override that names no algorithm counts as the first of its rule's. */
const algorithmOf = ({ bands: [first] }: Rule) => first?.algorithm ?? 'TOKEN_BUCKET'

function readOverride(fields: Fields, rule: Rule, nowMs: number, ipv6Prefix: number) {
  const given = fields.require('key', keyKind)
  const action = fields.require('action', actionKind)
  const expiresAtMs = fields.read('expiresAt', momentKind)
  const note = fields.read('note', noteKind)
  const balance = readBalance(fields, nowMs)
  if (action === 'LIMIT' && !fields.has('bands') && !fields.has('balance'))
    fields.wrong('bands', 'found nothing; allowed: with LIMIT a list of 1 to 8 bands, or a balance')
  if (action !== 'LIMIT' && action !== undefined)
    for (const name of ['bands', 'balance'])
      if (fields.has(name)) fields.wrong(name, `found with ${action}; allowed: ${name} with LIMIT only`)
  const key = given === undefined ? undefined : overrideKey(given, rule, ipv6Prefix)
  if (typeof key === 'string') fields.wrong('key', key)
  const terms = { action, expiresAtMs, note, ...(balance !== undefined && { balance }) }
  return typeof key === 'object' ? { ...key, terms } : undefined
}

/** What is left as of an instant; if none is given, as of now. */
function readBalance(fields: Fields, nowMs: number): StartingBalance | undefined {
  const permits = fields.read('balance', balanceKind)
  const at = fields.read('balanceAt', momentKind)
  if (fields.has('balanceAt') && !fields.has('balance'))
    fields.wrong('balanceAt', 'found without balance; allowed: beside a balance')
  const atMs = at ?? Math.floor(nowMs)
  if (atMs > nowMs)
    fields.wrong(
      'balanceAt',
      `found ${new Date(atMs).toISOString()}, which is still to come; allowed: an instant up to now`,
    )
  return permits === undefined ? undefined : { permits, atMs }
}

/**
 * A key in the spelling in which the rule counts it: of addresses there is only one. What is wrong with it, if anything.
 */
export function overrideKey(given: string, { limitScope }: Rule, ipv6Prefix = 56): OverrideKey | string {
  if (limitScope !== 'IP') return { key: given, isRange: false }
  const network = parseCidr(given)
  if (network === undefined && given.includes('/'))
    return `found ${JSON.stringify(given)}; allowed: an address, or a range such as 10.0.0.0/8 or 2001:db8::/32`
  if (network === undefined) return { key: given, isRange: false }
  const spelt = cidrText(network)
  const [address = '', length = ''] = spelt.split('/')
  const whole = address.includes(':') ? ipv6Prefix : 32
  if (!given.includes('/') || (whole === 32 && length === '32'))
    return { key: ipIdentity(address, ipv6Prefix), isRange: false }
  if (Number(length) > whole)
    return `found ${JSON.stringify(given)}; allowed: a prefix of at most ${whole}, because IPv6 addresses count by their first ${whole} bits`
  if (Number(length) === whole) return { key: ipIdentity(address, ipv6Prefix), isRange: false }
  return { key: spelt, isRange: true }
}

/** As it is told again: in the spelling of a document. */
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
