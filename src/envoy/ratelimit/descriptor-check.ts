import type { CallLimit, JointCheck } from '../../core/decision/joint/joint-check.js'
import { joinKeyParts } from '../../core/keys/key-parts.js'
import type { RequestContext } from '../../core/request-context.js'
import { maxCapacity } from '../../core/rule.js'
import { GrpcError } from '../grpc/status.js'
import type { Descriptor, Entry, LimitOverride } from './messages.js'
import { windowOfUnit } from './units.js'

/**
 * The attribute with the keys of a descriptor in order, separated by `|`. Rules use it to apply to descriptors of exactly these
 * keys, as the configuration of envoyproxy/ratelimit does.
 */
export const keysAttribute = 'envoy.descriptor'

/** The attribute of the second entry with the same key is `key#2`, and so on. */
export const repeatedKey = (key: string, count: number): string => `${key}#${count}`

/** The fields of a context that entries with these keys set, in addition to the attribute. */
const fields: ReadonlyMap<string, keyof RequestContext> = new Map([
  ['remote_address', 'clientIp'],
  ['path', 'path'],
  ['method', 'method'],
  ['user_id', 'userId'],
  ['api_key', 'apiKey'],
])

/** Converts a descriptor. `hits` are those of the call, for descriptors without their own. */
export function checkOf(descriptor: Descriptor, hits: number, headers: RequestContext['headers']): JointCheck {
  const { entries, limit } = descriptor
  const context = contextOf(entries, headers)
  const permits = permitsOf(descriptor, hits)
  return limit === undefined ? { context, permits } : { context, permits, limit: limitOf(limit, entries) }
}

type MutableContext = { -readonly [Field in keyof RequestContext]: unknown }

function contextOf(entries: readonly Entry[], headers: RequestContext['headers']): RequestContext {
  const attributes: Record<string, unknown> = {}
  const context: MutableContext = { attributes, headers }
  for (let i = 0; i < entries.length; i++) {
    const { key, value } = entries[i] as Entry
    const count = occurrence(entries, i)
    if (count === 1) {
      const field = fields.get(key)
      if (field !== undefined) context[field] = value
    }
    set(attributes, count === 1 ? key : repeatedKey(key, count), value)
  }
  set(attributes, keysAttribute, joinKeyParts(entries.map(({ key }) => key)))
  return context as RequestContext
}

/** 1 for the first entry with its key. */
function occurrence(entries: readonly Entry[], index: number): number {
  const { key } = entries[index] as Entry
  let count = 1
  for (let i = 0; i < index; i++) if (entries[i]?.key === key) count++
  return count
}

/** An assignment to `__proto__` would set the prototype. */
function set(attributes: Record<string, unknown>, name: string, value: string): void {
  if (name === '__proto__')
    Object.defineProperty(attributes, name, { value, enumerable: true, configurable: true, writable: true })
  else attributes[name] = value
}

/** Hits beyond every capacity stay beyond it. */
function permitsOf({ hitsAddend, isNegative }: Descriptor, hits: number): number {
  const permits = Math.min(hitsAddend ?? hits, maxCapacity)
  return isNegative && permits > 0 ? -permits : permits
}

function limitOf({ requestsPerUnit, unit, unitMultiplier }: LimitOverride, entries: readonly Entry[]): CallLimit {
  const windowMs = windowOfUnit(unit, unitMultiplier)
  if (windowMs === undefined)
    throw new GrpcError(
      'INVALID_ARGUMENT',
      `The limit of a descriptor must have a unit from SECOND to YEAR and a unit_multiplier that give at most 366 days; received unit ${unit} and unit_multiplier ${unitMultiplier}.`,
    )
  const key = joinKeyParts(entries.flatMap(({ key, value }) => [key, value]))
  return { capacity: Math.min(requestsPerUnit, maxCapacity), windowMs, key }
}
