/**
 * Where a JSON text stops being JSON. `JSON.parse` does not always say where, and takes the last of two equal keys in
 * silence; this finds the first mistake of either kind, and leaves building the value to `JSON.parse`.
 */
export interface TextMistake {
  readonly offset: number
  readonly message: string
}

export const maxDepth = 100

export function jsonMistake(text: string): TextMistake | undefined {
  let offset = 0
  let mistake: TextMistake | undefined
  const fail = (message: string, at = offset): false => {
    mistake ??= { offset: at, message }
    return false
  }
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = offset
    if (!pattern.test(text)) return false
    offset = pattern.lastIndex
    return true
  }
  const shown = (): string => (offset < text.length ? JSON.stringify(text[offset]) : 'the end')
  const take = (char: string): boolean => {
    skip(space)
    if (text[offset] !== char) return false
    offset += 1
    return true
  }
  // By hand: a regular expression needs stack for every escape of a long text.
  const string = (): boolean => {
    if (text[offset] !== '"') return false
    for (let at = offset + 1; at < text.length; at++) {
      const char = text[at] as string
      if (char === '"') {
        offset = at + 1
        return true
      }
      if (char < ' ') return false
      if (char !== '\\') continue
      escaped.lastIndex = at
      if (!escaped.test(text)) return false
      at = escaped.lastIndex - 1
    }
    return false
  }
  const value = (depth: number): boolean => {
    if (depth > maxDepth) return fail(`nested deeper than ${maxDepth} levels`)
    if (take('{')) return members('}', depth, keys())
    if (take('[')) return members(']', depth, () => true)
    if (string() || skip(number) || skip(word)) return true
    return text[offset] === '"'
      ? fail('text that is not closed, or has a line break or a wrong \\ in it')
      : fail(`found ${shown()}; expected a value`)
  }
  const members = (end: string, depth: number, key: () => boolean): boolean => {
    if (take(end)) return true
    do if (!key() || !value(depth + 1)) return false
    while (take(','))
    return take(end) || fail(`found ${shown()}; expected , or ${end}`)
  }
  const keys = (): (() => boolean) => {
    const seen = new Set<string>()
    return () => {
      skip(space)
      const start = offset
      if (!string()) return fail(`found ${shown()}; expected a name in double quotes`)
      const name = JSON.parse(text.slice(start, offset)) as string
      if (seen.has(name)) return fail(`${JSON.stringify(name.slice(0, 60))} is given twice`, start)
      seen.add(name)
      return take(':') || fail(`found ${shown()}; expected :`)
    }
  }
  if (!value(0)) return mistake
  skip(space)
  return offset === text.length ? undefined : { offset, message: `found ${shown()} after the end of the document` }
}

const space = /[ \t\r\n]*/y
const escaped = /\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})/y
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const word = /true|false|null/y
