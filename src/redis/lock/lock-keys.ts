import { FluxGateError } from '../../core/errors.js'
import { hashSlot } from '../client/hash-slot.js'

/** Everything that is kept about one name. All of it, and data with the same hash tag, is in one slot of a cluster. */
export interface LockKeys {
  readonly name: string
  /** Of a lock, text: the fence and the owner of who holds it. Of a semaphore, a sorted set: holds by when each ends. */
  readonly held: string
  /** Hash: the holds of a lock's owner. */
  readonly holds: string
  /** Text: the last fence that was given. */
  readonly fence: string
  /** Sorted sets: who waits in line, by ticket, and until when each place is kept. */
  readonly queue: string
  readonly places: string
  /** Where those who wait hear of it. */
  readonly channel: string
  readonly slot: number
}

/** A name is its own hash tag unless it has one, so `orders` and `{orders}` are the same. */
export function lockKeys(prefix: string, name: string, kind: 'lock' | 'semaphore'): LockKeys {
  const tagged = /[{}]/.test(name) ? name : `{${name}}`
  const of = (what: string): string => `${prefix}:${kind}${what}:${tagged}`
  return {
    name,
    held: of(''),
    holds: of('-holds'),
    fence: of('-fence'),
    queue: of('-queue'),
    places: of('-places'),
    channel: of('-free'),
    slot: hashSlot(of('')),
  }
}

const mostNames = 100

/** One name or several, in an order that is the same for everybody. */
export function checkNames(names: string | readonly string[]): readonly string[] {
  const list: readonly unknown[] = Array.isArray(names) ? names : [names]
  for (const name of list)
    if (typeof name !== 'string' || name === '' || Buffer.byteLength(name) > 1_024 || hasStrayBrace(name))
      throw new FluxGateError(
        'FLUXGATE_ARGUMENT_INVALID',
        `A lock is named by text of 1 to 1024 bytes, in which braces hold a hash tag as in "orders:{42}"; found ${JSON.stringify(name)}.`,
      )
  const different = new Set(list as readonly string[])
  if (different.size === 0 || different.size > mostNames)
    throw new FluxGateError(
      'FLUXGATE_ARGUMENT_INVALID',
      `A hold is of 1 to ${mostNames} different locks; found ${different.size}.`,
    )
  return [...different].sort()
}

/** Braces that hold nothing would leave the slots of a lock's keys to chance. */
const hasStrayBrace = (name: string): boolean => /[{}]/.test(name) && !/^[^{}]*\{[^{}]+\}/.test(name)
