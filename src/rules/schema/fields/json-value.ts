import { keepSourceText, sourceTextOf } from '../../../core/json/source-text.js'
import { isObject, itemsOf } from '../../../validation/fields.js'
import { describeValue, placeOf, type ValidationIssues } from '../../../validation/issues.js'

const maxDepth = 100
export const maxNodes = 100_000

/**
 * Copies a JSON value, such as the `attributes` of a rule, with the same order of keys. Values that JSON cannot represent
 * are reported, because the first save would lose them. A number too large for JavaScript is accepted if its source text is
 * kept with it.
 */
export function copyJson(value: unknown, path: string, issues: ValidationIssues): unknown {
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
    return reject(place, describeValue(from))
  }
  const copyWritten = (from: Readonly<Record<string, unknown>>, place: string, depth: number): unknown => {
    const text = sourceTextOf(from)
    if (text === undefined) return copyObject(from, place, depth)
    // An object inside one with source text may have source text of its own.
    const wasWritten = isWritten
    isWritten = true
    const to = copyObject(from, place, depth)
    isWritten = wasWritten
    keepSourceText(to, text)
    return to
  }
  const copyObject = (from: Readonly<Record<string, unknown>>, place: string, depth: number): object => {
    const to = {}
    for (const [name, member] of Object.entries(from)) {
      if (member === undefined) continue
      const value = copy(member, placeOf(place, name), depth + 1)
      // An assignment to `__proto__` would set the prototype.
      Object.defineProperty(to, name, { value, writable: true, enumerable: true, configurable: true })
    }
    return to
  }
  const reject = (place: string, what: string): undefined => {
    issues.add(place, `must be a JSON value; received ${what}`)
    return undefined
  }
  /** Reports an exceeded bound once and stops copying, because the value may be cyclic. */
  const giveUp = (place: string, what: string): undefined => {
    if (Number.isFinite(nodes)) reject(place, what)
    nodes = Number.POSITIVE_INFINITY
    return undefined
  }
  return copy(value, path, 0)
}

/** Also true for plain objects of another realm, which have another `Object.prototype`. */
function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (!isObject(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === null || Object.getPrototypeOf(prototype) === null
}
