/** Joins parts to one key. Different lists of parts never give the same key: the separator and the escape character are escaped. */
export function joinKeyParts(parts: readonly string[]): string {
  return parts.map(escapePart).join('|')
}

function escapePart(part: string): string {
  return part.includes('|') || part.includes('\\') ? part.replace(/[|\\]/g, '\\$&') : part
}
