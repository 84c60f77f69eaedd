import { FluxGateError } from '../../core/errors.js'
import { hashSlot } from '../client/hash-slot.js'

/** The keys of one lock or semaphore. They share a cluster slot with all data that has the same hash tag. */
export interface LockKeys {
  readonly name: string
  /**
   * For a lock, a string: the fencing token and the owner. For a semaphore, a sorted set: the ids of the holds, scored by
   * expiry time.
   */
  readonly held: string
  /** Hash: the holds of the lock's owner. */
  readonly holds: string
  /** String: the last fencing token that was issued. */
  readonly fence: string
  /** Sorted sets: the queued ids, scored by ticket in the first and by the expiry time of their queue slot in the second. */
  readonly queue: string
  readonly queueExpiry: string
  /** The channel that announces releases. */
  readonly channel: string
  readonly slot: number
}

/** A name without a hash tag is its own hash tag, so `orders` and `{orders}` are the same lock. */
export function lockKeys(prefix: string, name: string, kind: 'lock' | 'semaphore'): LockKeys {
  const tagged = /[{}]/.test(name) ? name : `{${name}}`
  const of = (what: string): string => `${prefix}:${kind}${what}:${tagged}`
  return {
    name,
    held: of(''),
    holds: of('-holds'),
    fence: of('-fence'),
    queue: of('-queue'),
    queueExpiry: of('-places'),
    channel: of('-free'),
    slot: hashSlot(of('')),
  }
}

const maxNames = 100

/** Validates one or several names. Returns them sorted and without duplicates, so that all callers use the same order. */
export function checkNames(names: string | readonly string[]): readonly string[] {
  const list: readonly unknown[] = Array.isArray(names) ? names : [names]
  for (const name of list)
    if (typeof name !== 'string' || name === '' || Buffer.byteLength(name) > 1_024 || hasStrayBrace(name))
      throw new FluxGateError(
        'FLUXGATE_ARGUMENT_INVALID',
        `A lock name must be a string of 1 to 1024 bytes, with braces only around a hash tag as in "orders:{42}"; received ${JSON.stringify(name)}.`,
      )
  const unique = new Set(list as readonly string[])
  if (unique.size === 0 || unique.size > maxNames)
    throw new FluxGateError(
      'FLUXGATE_ARGUMENT_INVALID',
      `names must contain 1 to ${maxNames} different locks; received ${unique.size}.`,
    )
  return [...unique].sort()
}

/** Without a valid hash tag, the keys of a lock would be in different slots. */
const hasStrayBrace = (name: string): boolean => /[{}]/.test(name) && !/^[^{}]*\{[^{}]+\}/.test(name)
