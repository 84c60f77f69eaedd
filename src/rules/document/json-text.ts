/**
 * JSON text → value, in steps, with the place of the first mistake. `JSON.parse` does not always say where a text stops
 * being JSON, takes the last of two equal names without a word, and reads a long text in one call that nothing can interrupt.
 */
import type { JsonPath } from '../../core/json/json-places.js'
import { asWritten, keepText, type Layout } from '../../core/json/written-json.js'
import { finish, type Steps } from '../../core/scheduling/steps.js'

export interface TextMistake {
  readonly offset: number
  readonly message: string
}

export type ReadJson = { readonly value: unknown; readonly mistake?: undefined } | { readonly mistake: TextMistake }

export interface JsonOptions {
  /** How the text of `attributes` is kept; default as it is written. */
  readonly layout?: Layout | undefined
  /** Called with the place of each member of a list or an object that is at most four levels deep. The path is the reader's. */
  readonly onPlace?: ((path: JsonPath, start: number, end: number) => void) | undefined
}

export const maxDepth = 100

/** Deeper than any rule of a document. */
const placesDepth = 4
const valuesPerStep = 64

/** A list or an object that is being read. */
interface Open {
  readonly value: unknown[] | Record<string, unknown>
  readonly end: ']' | '}'
  /** Where the value of the present member begins. */
  start: number
}

export const jsonMistake = (text: string): TextMistake | undefined => finish(jsonSteps(text)).mistake

/** As `parseJson`, in steps. */
export function* jsonValueSteps(text: string): Steps<unknown> {
  const read = yield* jsonSteps(text)
  if (read.mistake === undefined) return read.value
  throw new SyntaxError(`not JSON: at character ${read.mistake.offset + 1}, ${read.mistake.message}`)
}

export function* jsonSteps(text: string, { layout = asWritten, onPlace }: JsonOptions = {}): Steps<ReadJson> {
  const open: Open[] = []
  /** Of the members that are being read, from the outermost on. */
  const path: (string | number)[] = []
  let offset = 0
  /** How many levels deep the outermost `attributes` are that are being read. */
  let attributesDepth: number | undefined

  const fail = (message: string, at = offset): ReadJson => ({ mistake: { offset: at, message } })
  const shown = (): string => (offset < text.length ? JSON.stringify(text[offset]) : 'the end')
  const skipSpace = (): void => {
    while (isSpace(text.charCodeAt(offset))) offset += 1
  }
  const take = (char: string): boolean => {
    skipSpace()
    if (text[offset] !== char) return false
    offset += 1
    return true
  }
  /** `undefined` if there is none, or a mistaken one. */
  const string = (): string | undefined => {
    const end = endOfString(text, offset)
    if (end === undefined) return undefined
    try {
      const parsed = JSON.parse(text.slice(offset, end)) as string
      offset = end
      return parsed
    } catch {
      return undefined
    }
  }
  /** A mistake, or nothing once the reader is at the value of the next member. */
  const name = ({ value, end }: Open): ReadJson | undefined => {
    if (end === ']') {
      path.push((value as unknown[]).length)
      return undefined
    }
    skipSpace()
    const start = offset
    const found = string()
    if (found === undefined) return fail(`found ${shown()}; expected a name in double quotes`)
    if (Object.hasOwn(value, found)) return fail(`${JSON.stringify(found.slice(0, 60))} is given twice`, start)
    path.push(found)
    if (found === 'attributes') attributesDepth ??= path.length
    return take(':') ? undefined : fail(`found ${shown()}; expected :`)
  }
  const add = ({ value, start }: Open, member: unknown): void => {
    const last = path.at(-1) as string | number
    if (path.length <= placesDepth) onPlace?.(path, start, offset)
    if (Array.isArray(value)) value.push(member)
    else setMember(value, String(last), member)
    if (attributesDepth === path.length) {
      attributesDepth = undefined
      if (typeof member === 'object' && member !== null) keepText(member, layout(text.slice(start, offset)))
    }
    path.pop()
  }

  for (let count = 1; ; count++) {
    if (count % valuesPerStep === 0) yield
    let value: unknown
    if (open.length > maxDepth) return fail(`nested deeper than ${maxDepth} levels`)
    skipSpace()
    const outer = open.at(-1)
    if (outer !== undefined) outer.start = offset
    const first = text[offset]
    if (first === '{' || first === '[') {
      offset += 1
      const opened: Open = first === '{' ? { value: {}, end: '}', start: 0 } : { value: [], end: ']', start: 0 }
      if (!take(opened.end)) {
        open.push(opened)
        const mistake = name(opened)
        if (mistake !== undefined) return mistake
        continue
      }
      value = opened.value
    } else {
      const scalar = first === '"' ? string() : wordAt(text, offset)
      if (scalar === undefined)
        return first === '"'
          ? fail('text that is not closed, or has a line break or a wrong \\ in it')
          : fail(`found ${shown()}; expected a value`)
      if (first !== '"') offset += (scalar as string).length
      value = first === '"' ? scalar : JSON.parse(scalar as string)
    }
    // The value may be the last one of several lists and objects.
    for (;;) {
      const inner = open.at(-1)
      if (inner === undefined) {
        skipSpace()
        return offset === text.length ? { value } : fail(`found ${shown()} after the end of the document`)
      }
      add(inner, value)
      if (take(',')) {
        const mistake = name(inner)
        if (mistake !== undefined) return mistake
        break
      }
      if (!take(inner.end)) return fail(`found ${shown()}; expected , or ${inner.end}`)
      open.pop()
      value = inner.value
    }
  }
}

const isSpace = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

/** Assigning would take the name `__proto__` for the prototype. */
function setMember(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name !== '__proto__') object[name] = value
  else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
}

/** Behind the quotation mark that closes; whether all between is allowed is for `JSON.parse` to say. */
function endOfString(text: string, start: number): number | undefined {
  if (text[start] !== '"') return undefined
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let first = end
    while (text[first - 1] === '\\') first -= 1
    if ((end - first) % 2 === 0) return end + 1
  }
  return undefined
}

/** A number, true, false or null. */
function wordAt(text: string, offset: number): string | undefined {
  word.lastIndex = offset
  return word.exec(text)?.[0]
}

const word = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
