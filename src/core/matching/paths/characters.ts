/**
 * One spelling for each character of a path: characters that a segment may contain as themselves are decoded, all others
 * are percent-encoded with capital digits, and a backslash becomes a slash, as in URLs of browsers. `%2F` and `%5C` stay
 * encoded. `*` is always encoded, so that a pattern can name it. A percent sign that starts no escape becomes `%25`.
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
  return found === '\\' ? '/' : (escapes[found.charCodeAt(0)] ?? encoded(found))
}

/**
 * The same for a pattern. Wildcards and braces keep their meaning where they are written as themselves, and their escapes
 * stand for the characters. `%3A` stays encoded too: it writes a segment that starts with a colon and captures nothing.
 */
export function canonicalPattern(pattern: string): string {
  return pattern.replace(/%[0-9A-Fa-f]{2}|[^\w\-.~!$&'()+,;=:@/*?{}]/gu, (found) =>
    found.toUpperCase() === '%3A' ? '%3A' : canonicalCharacter(found),
  )
}

/** Of each character of ASCII. */
const escapes: readonly string[] = Array.from({ length: 128 }, (_, code) => encoded(String.fromCharCode(code)))

/** `%40` → `@` for what a segment may contain: RFC 3986 calls it `pchar`. */
const decodable: ReadonlyMap<string, string> = new Map(
  Array.from(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()+,;=:@",
    (character): [string, string] => [encoded(character), character],
  ),
)

function encoded(text: string): string {
  return Buffer.from(text).toString('hex').toUpperCase().replace(/../g, '%$&')
}

/**
 * A path with canonical characters, without regard to letter case. Characters beyond ASCII are folded too, and in the
 * widest sense: whatever `toLowerCase`, `toUpperCase` or a case-insensitive expression of an upstream takes for the same
 * letter is the same here, such as the Kelvin sign and `k`.
 */
export function foldPath(path: string): string {
  return path.replace(/(?:%[89A-F][0-9A-F])+|%[0-7][0-9A-F]|[A-Z]+/g, (found) => {
    if (found.charCodeAt(0) !== percent) return found.toLowerCase()
    return found.charCodeAt(1) < eight ? found : foldEscapes(found)
  })
}

function foldEscapes(escapes: string): string {
  try {
    return foldText(decodeURIComponent(escapes)).replace(/[\u0080-\u{10ffff}]+/gu, encoded)
  } catch {
    // Not UTF-8.
    return escapes
  }
}

/** Folded character by character, so that a letter does not depend on its neighbours, as the Greek sigma does. */
export function foldText(text: string): string {
  let folded = ''
  for (const character of text) folded += character.toLowerCase().toUpperCase().toLowerCase()
  return folded
}

const percent = 0x25
const eight = 0x38
