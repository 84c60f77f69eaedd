/**
 * An incremental JSON parser that reports the position of the first syntax error and rejects duplicate keys. `JSON.parse`
 * does not always report a position, silently keeps the last of two duplicate keys, and blocks the event loop for long texts.
 */
import type { JsonPath } from '../../core/json/json-ranges.js'
import { endOfString, skipSpace } from '../../core/json/scanner.js'
import { keepLayout, keepSourceText, type Layout } from '../../core/json/source-text.js'
import { finish, type Steps } from '../../core/scheduling/steps.js'

export interface TextIssue {
  readonly offset: number
  readonly message: string
}

export type JsonResult = { readonly value: unknown; readonly issue?: undefined } | { readonly issue: TextIssue }

export interface JsonOptions {
  /** Formats the source text that is kept with `attributes`. Default: unchanged. */
  readonly layout?: Layout | undefined
  /** Called with the position of each list item and object member up to four levels deep. The parser reuses `path`; copy it to keep it. */
  readonly onPlace?: ((path: JsonPath, start: number, end: number) => void) | undefined
}

/** Deeper than any valid rule, and shallow enough for recursive functions. */
export const maxDepth = 100

/** At least the depth of a rule in a document. */
const placesDepth = 4
const valuesPerStep = 64

/** A list or object that is being parsed. */
interface OpenContainer {
  readonly value: unknown[] | Record<string, unknown>
  readonly end: ']' | '}'
  /** Offset of the value of the current member. */
  start: number
}

export const jsonIssue = (text: string): TextIssue | undefined => finish(parseJsonSteps(text)).issue

/** Like `parseJson`, in steps. */
export function* jsonValueSteps(text: string): Steps<unknown> {
  const read = yield* parseJsonSteps(text)
  if (read.issue === undefined) return read.value
  throw new SyntaxError(`not JSON: at character ${read.issue.offset + 1}, ${read.issue.message}`)
}

export function* parseJsonSteps(text: string, { layout = keepLayout, onPlace }: JsonOptions = {}): Steps<JsonResult> {
  const open: OpenContainer[] = []
  /** Path of the current member, outermost first. */
  const path: (string | number)[] = []
  let offset = 0
  /** Depth of the outermost `attributes` member that contains the current offset. */
  let attributesDepth: number | undefined

  const fail = (message: string, at = offset): JsonResult => ({ issue: { offset: at, message } })
  const unexpected = (): string => `unexpected ${offset < text.length ? JSON.stringify(text[offset]) : 'end of input'}`
  const take = (char: string): boolean => {
    offset = skipSpace(text, offset)
    if (text[offset] !== char) return false
    offset += 1
    return true
  }
  /** Returns `undefined` if there is no valid string at the offset. */
  const string = (): string | undefined => {
    if (text[offset] !== '"') return undefined
    const end = endOfString(text, offset)
    try {
      const parsed = JSON.parse(text.slice(offset, end)) as string
      offset = end
      return parsed
    } catch {
      return undefined
    }
  }
  /** Parses up to the value of the next member. Returns an error, or `undefined` on success. */
  const name = ({ value, end }: OpenContainer): JsonResult | undefined => {
    if (end === ']') {
      path.push((value as unknown[]).length)
      return undefined
    }
    offset = skipSpace(text, offset)
    const start = offset
    const found = string()
    if (found === undefined) return fail(`${unexpected()}; expected a property name in double quotes`)
    if (Object.hasOwn(value, found)) return fail(`${JSON.stringify(found.slice(0, 60))} is given twice`, start)
    path.push(found)
    if (found === 'attributes') attributesDepth ??= path.length
    return take(':') ? undefined : fail(`${unexpected()}; expected :`)
  }
  const add = ({ value, start }: OpenContainer, member: unknown): void => {
    const last = path.at(-1) as string | number
    if (path.length <= placesDepth) onPlace?.(path, start, offset)
    if (Array.isArray(value)) value.push(member)
    else setMember(value, String(last), member)
    if (attributesDepth === path.length) {
      attributesDepth = undefined
      if (typeof member === 'object' && member !== null) keepSourceText(member, layout(text.slice(start, offset)))
    }
    path.pop()
  }

  for (let count = 1; ; count++) {
    if (count % valuesPerStep === 0) yield
    let value: unknown
    if (open.length > maxDepth) return fail(`nested deeper than ${maxDepth} levels`)
    offset = skipSpace(text, offset)
    const outer = open.at(-1)
    if (outer !== undefined) outer.start = offset
    const first = text[offset]
    if (first === '{' || first === '[') {
      offset += 1
      const opened: OpenContainer =
        first === '{' ? { value: {}, end: '}', start: 0 } : { value: [], end: ']', start: 0 }
      if (!take(opened.end)) {
        open.push(opened)
        const failure = name(opened)
        if (failure !== undefined) return failure
        continue
      }
      value = opened.value
    } else {
      const scalar = first === '"' ? string() : literalAt(text, offset)
      if (scalar === undefined)
        return first === '"'
          ? fail('invalid string: not closed, or with a line break or an invalid escape')
          : fail(`${unexpected()}; expected a value`)
      if (first !== '"') offset += (scalar as string).length
      value = first === '"' ? scalar : JSON.parse(scalar as string)
    }
    // The value may be the last one of several nested lists and objects.
    for (;;) {
      const inner = open.at(-1)
      if (inner === undefined) {
        offset = skipSpace(text, offset)
        return offset === text.length ? { value } : fail(`${unexpected()} after the end of the document`)
      }
      add(inner, value)
      if (take(',')) {
        const failure = name(inner)
        if (failure !== undefined) return failure
        break
      }
      if (!take(inner.end)) return fail(`${unexpected()}; expected , or ${inner.end}`)
      open.pop()
      value = inner.value
    }
  }
}

/** An assignment to `__proto__` would set the prototype. */
function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}

/** A number, true, false or null. */
function literalAt(text: string, offset: number): string | undefined {
  literal.lastIndex = offset
  return literal.exec(text)?.[0]
}

const literal = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
