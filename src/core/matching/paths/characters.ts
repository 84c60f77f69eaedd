import { percentEncoded } from '../../runtime/utf8.js'

/**
 * Gives each character of a path one spelling. Characters that are legal in a segment are decoded. All others are
 * percent-encoded with upper-case digits. A backslash becomes a slash, as in browsers. `%2F` and `%5C` stay encoded. `*` is
 * always encoded, so that a pattern can contain it as a literal. A percent sign that starts no escape becomes `%25`.
 */
export function canonicalCharacters(path: string): string {
  return path.replace(/%[0-9A-Fa-f]{2}|[^\w\-.~!$&'()+,;=:@/]/gu, canonicalCharacter)
}

export function canonicalPath(path: string, caseSensitive: boolean): string {
  const characters = canonicalCharacters(path)
  return caseSensitive ? characters : foldPath(characters)
}

function canonicalCharacter(found: string): string {
  if (found.length === 3) return decodable.get(found.toUpperCase()) ?? found.toUpperCase()
  return found === '\\' ? '/' : (escapes[found.charCodeAt(0)] ?? percentEncoded(found))
}

/**
 * Like `canonicalCharacters`, for a pattern. Unescaped wildcards and braces keep their meaning; escaped ones are literals.
 * `%3A` also stays encoded, so that a segment can start with a literal colon instead of a capture.
 */
export function canonicalPattern(pattern: string): string {
  return pattern.replace(/%[0-9A-Fa-f]{2}|[^\w\-.~!$&'()+,;=:@/*?{}]/gu, (found) =>
    found.toUpperCase() === '%3A' ? '%3A' : canonicalCharacter(found),
  )
}

/** The escape of each ASCII character. */
const escapes: readonly string[] = Array.from({ length: 128 }, (_, code) => percentEncoded(String.fromCharCode(code)))

/** `%40` → `@` for all characters that are legal in a segment (`pchar` in RFC 3986). */
const decodable: ReadonlyMap<string, string> = new Map(
  Array.from(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()+,;=:@",
    (character): [string, string] => [percentEncoded(character), character],
  ),
)

/**
 * Folds the letter case of a path with canonical characters. Non-ASCII characters are folded in the widest sense: letters that
 * `toLowerCase`, `toUpperCase` or a case-insensitive regular expression of an upstream treats as equal become equal, such as
 * the Kelvin sign and `k`.
 */
export function foldPath(path: string): string {
  return path.replace(/(?:%[89A-F][0-9A-F])+|%[0-7][0-9A-F]|[A-Z]+/g, (found) => {
    if (found.charCodeAt(0) !== percent) return found.toLowerCase()
    return found.charCodeAt(1) < eight ? found : foldEscapes(found)
  })
}

function foldEscapes(escapes: string): string {
  try {
    return foldText(decodeURIComponent(escapes)).replace(/[\u0080-\u{10ffff}]+/gu, percentEncoded)
  } catch {
    // The bytes are not UTF-8.
    return escapes
  }
}

/** Folds character by character, because `toLowerCase` of a whole string depends on context (final Greek sigma). */
export function foldText(text: string): string {
  let folded = ''
  for (const character of text) folded += character.toLowerCase().toUpperCase().toLowerCase()
  return folded
}

const percent = 0x25
const eight = 0x38
