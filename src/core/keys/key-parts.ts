/**
 * Several parts as one key, such that no two different lists of parts give the same key: the separator, where it
 * occurs in a part, is escaped, and so is the escape.
 */
export function joinKeyParts(parts: readonly string[]): string {
  return parts.map(escapePart).join('|')
}

function escapePart(part: string): string {
  return part.includes('|') || part.includes('\\') ? part.replace(/[|\\]/g, '\\$&') : part
}
