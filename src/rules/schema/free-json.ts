import { keepText, writtenText } from '../../core/json/written-json.js'
import { isObject, itemsOf } from '../../validation/fields.js'
import { found, type Mistakes, placeOf } from '../../validation/issues.js'

const maxDepth = 100
export const maxNodes = 100_000

/**
 * A copy of what the owner of a rule keeps on it: same content, same order of keys, no longer shared with the
 * document. Anything that JSON could not carry is a mistake, as it would be lost at the first save; a number that is too
 * large for JavaScript is not, where its text is kept.
 */
export function copyJson(value: unknown, path: string, mistakes: Mistakes): unknown {
  let nodes = 0
  let isWritten = false
  const copy = (from: unknown, place: string, depth: number): unknown => {
    nodes += 1
    if (nodes > maxNodes) return giveUp(place, `more than ${maxNodes} values`)
    if (from === null || typeof from === 'string' || typeof from === 'boolean') return from
    if (typeof from === 'number' && (isWritten ? !Number.isNaN(from) : Number.isFinite(from))) return from
    if (depth > maxDepth) return giveUp(place, `more than ${maxDepth} levels`)
    const items = itemsOf(from)
    if (items !== undefined) return items.map((item, index) => copy(item, `${place}[${index}]`, depth + 1))
    if (isPlain(from)) return copyWritten(from, place, depth)
    return refuse(place, found(from))
  }
  const copyWritten = (from: Readonly<Record<string, unknown>>, place: string, depth: number): unknown => {
    const text = writtenText(from)
    if (text === undefined) return copyObject(from, place, depth)
    // Inside what was written, another part of it may have a text of its own.
    const wasWritten = isWritten
    isWritten = true
    const to = copyObject(from, place, depth)
    isWritten = wasWritten
    keepText(to, text)
    return to
  }
  const copyObject = (from: Readonly<Record<string, unknown>>, place: string, depth: number): object => {
    const to = {}
    for (const [name, member] of Object.entries(from)) {
      if (member === undefined) continue
      const value = copy(member, placeOf(place, name), depth + 1)
      // Assigning would take the name `__proto__` for the prototype.
      Object.defineProperty(to, name, { value, writable: true, enumerable: true, configurable: true })
    }
    return to
  }
  const refuse = (place: string, what: string): undefined => {
    mistakes.add(place, `found ${what}; allowed: JSON`)
    return undefined
  }
  /** Beyond a bound one mistake is enough: the rest may be endless. */
  const giveUp = (place: string, what: string): undefined => {
    if (Number.isFinite(nodes)) refuse(place, what)
    nodes = Number.POSITIVE_INFINITY
    return undefined
  }
  return copy(value, path, 0)
}

/** Also when it comes from another realm, whose Object is not this one. */
function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (!isObject(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
