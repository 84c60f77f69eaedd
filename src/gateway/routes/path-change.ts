/** What becomes of a path on its way to the upstream; the query is not part of it. */
export type PathChange = (path: string) => string

/** Without its first `parts` segments. What is left begins with a slash, and ends with one if it did. */
export function stripPrefix(parts: number): PathChange {
  return (path) => {
    let at = 0
    for (let i = 0; i < parts && at < path.length; i++) {
      while (path.charCodeAt(at) === slash) at++
      while (at < path.length && path.charCodeAt(at) !== slash) at++
    }
    return path.slice(at) || '/'
  }
}

/** Replaces what the pattern matches. `$1` and `${name}`, which files spell `$\{name}`, are what its groups matched. */
export function rewritePath(pattern: RegExp, replacement: string): PathChange {
  const parts = parseReplacement(replacement)
  const all = new RegExp(pattern.source, `${pattern.flags.replace('g', '')}g`)
  return (path) => {
    const changed = path.replace(all, (...found) => {
      const named = typeof found.at(-1) === 'object' ? (found.at(-1) as Record<string, string | undefined>) : {}
      return parts.map((part) => (typeof part === 'string' ? part : groupOf(part.group, found, named))).join('')
    })
    return changed.startsWith('/') ? changed : `/${changed}`
  }
}

interface Group {
  readonly group: string
}

/** `\` before a character takes away what it means. */
function parseReplacement(text: string): (string | Group)[] {
  const parts: (string | Group)[] = []
  const form = /\$\\?\{([A-Za-z]\w*)\}|\$(\d)|\\(.)|[^$\\]+|[$\\]/gs
  for (const [literal, name, digit, escaped] of text.matchAll(form)) {
    const group = name ?? digit
    parts.push(group === undefined ? (escaped ?? literal) : { group })
  }
  return parts
}

function groupOf(group: string, found: readonly unknown[], named: Record<string, string | undefined>): string {
  const value = /^\d$/.test(group) ? found[Number(group)] : named[group]
  return typeof value === 'string' ? value : ''
}

const slash = 0x2f
