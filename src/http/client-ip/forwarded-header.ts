/**
 * The Forwarded header (RFC 7239), parsed from the right. Every proxy appends its element, so only the right end is known to be
 * well-formed: a client may have sent an unclosed quote that, parsed from the left, would hide the elements of trusted proxies.
 */

/** The parameters of one element by lower-case name; undefined if the element is malformed. */
export type ForwardedElement = ReadonlyMap<string, string> | undefined

/** The elements of the header, the right-most first. Empty list items are skipped. */
export function* forwardedElements(text: string): Generator<ForwardedElement> {
  let end = text.length
  while (end > 0) {
    const start = elementStart(text, end)
    const element = text.slice(start, end)
    if (element.trim() !== '') yield parseElement(element)
    end = start - 1
  }
}

/** True if parsing from either end finds the same elements. */
export function isWellFormed(text: string): boolean {
  for (const element of forwardedElements(text)) if (element === undefined) return false
  return true
}

/** The index after the last comma before `end` that is not in a quoted string. */
function elementStart(text: string, end: number): number {
  let isQuoted = false
  for (let i = end - 1; i >= 0; i--) {
    const char = text[i]
    if (char === '"') isQuoted = isQuoted ? isEscaped(text, i) : true
    else if (char === ',' && !isQuoted) return i + 1
  }
  return 0
}

/** True if an odd number of backslashes precedes the character. */
function isEscaped(text: string, index: number): boolean {
  let before = index
  while (text[before - 1] === '\\') before--
  return (index - before) % 2 === 1
}

// Colons and brackets require quotes, but many proxies send addresses without them.
const pair =
  /[ \t]*([!#$%&'*+.^_`|~\w-]+)=(?:([!#$%&'*+.^_`|~\w:[\]-]+)|"((?:[\t !#-[\]-~\x80-\xff]|\\[\t -~\x80-\xff])*)")[ \t]*(;|$)/y

function parseElement(text: string): ForwardedElement {
  const parameters = new Map<string, string>()
  let at = 0
  for (;;) {
    pair.lastIndex = at
    const found = pair.exec(text)
    if (found === null) return undefined
    const [, name = '', token, quoted, separator] = found
    const lower = name.toLowerCase()
    if (parameters.has(lower)) return undefined
    parameters.set(lower, token ?? (quoted ?? '').replaceAll(/\\(.)/g, '$1'))
    if (separator === '') return parameters
    at = pair.lastIndex
    // RFC 7239 allows empty pairs, so an element may end with a semicolon.
    if (/^[ \t]*$/.test(text.slice(at))) return parameters
  }
}

/** Formats a parameter value: a token unchanged, any other value as a quoted string. */
export function forwardedValue(value: string): string {
  return /^[!#$%&'*+.^_`|~\w-]+$/.test(value) ? value : `"${value.replaceAll(/["\\]/g, '\\$&')}"`
}
