/** A change of the path that is sent to the upstream. The query is not part of it. */
export type PathChange = (path: string) => string

/** Removes the first `count` segments. The result starts with a slash; a trailing slash is kept. */
export function stripPrefix(count: number): PathChange {
  return (path) => {
    let at = 0
    for (let i = 0; i < count && at < path.length; i++) {
      while (path.charCodeAt(at) === slash) at++
      while (at < path.length && path.charCodeAt(at) !== slash) at++
    }
    return path.slice(at) || '/'
  }
}

/** Replaces every match of the pattern. `$1` and `${name}` (`$\{name}` in files) insert the match of a group. */
export function rewritePath(pattern: RegExp, replacement: string): PathChange {
  const parts = parseReplacement(replacement)
  const all = new RegExp(pattern.source, `${pattern.flags.replace('g', '')}g`)
  return (path) => {
    const changed = path.replace(all, (...match) => {
      const named = typeof match.at(-1) === 'object' ? (match.at(-1) as Record<string, string | undefined>) : {}
      return parts.map((part) => (typeof part === 'string' ? part : groupText(part.group, match, named))).join('')
    })
    return changed.startsWith('/') ? changed : `/${changed}`
  }
}

interface Group {
  readonly group: string
}

/** `\` escapes the next character. */
function parseReplacement(text: string): (string | Group)[] {
  const parts: (string | Group)[] = []
  const form = /\$\\?\{([A-Za-z]\w*)\}|\$(\d)|\\(.)|[^$\\]+|[$\\]/gs
  for (const [literal, name, digit, escaped] of text.matchAll(form)) {
    const group = name ?? digit
    parts.push(group === undefined ? (escaped ?? literal) : { group })
  }
  return parts
}

function groupText(group: string, match: readonly unknown[], named: Record<string, string | undefined>): string {
  const value = /^\d$/.test(group) ? match[Number(group)] : named[group]
  return typeof value === 'string' ? value : ''
}

const slash = 0x2f
