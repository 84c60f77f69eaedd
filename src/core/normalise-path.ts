/**
 * One spelling per path, so that another spelling is not a way around a limit: query and fragment cut off, escapes of
 * unreserved characters decoded, dot segments removed, repeated slashes collapsed, no slash at the end.
 *
 * `%2F` stays an escape, because decoded it would be a separator that the sender did not write. Characters beyond
 * ASCII become the escapes that browsers send for them, so a rule may spell them either way.
 */
export function normalisePath(path: string | null | undefined): string {
  if (path === undefined || path === null) return '/'
  // Most requests are spelt normally: they pay for one scan and no copy.
  const end = normalLength(path)
  if (end === path.length) return path
  return end === -1 ? normaliseSegments(path.slice(0, pathEnd(path))) : path.slice(0, end)
}

/** The same for text in which `?` and `#` have no special meaning, such as a pattern. */
export function normaliseSegments(text: string): string {
  const kept: string[] = []
  for (const segment of encodeNonAscii(decodeUnreserved(text)).split('/')) {
    if (segment === '..') kept.pop()
    else if (segment !== '.') kept.push(segment)
  }
  return `/${kept.filter((segment) => segment !== '').join('/')}`
}

const slash = 0x2f
const dot = 0x2e
const percent = 0x25
const question = 0x3f
const hash = 0x23

/** Where query or fragment begin, or the text ends, if all before is spelt normally; else -1. */
function normalLength(path: string): number {
  if (path.charCodeAt(0) !== slash) return -1
  for (let i = 0; i < path.length; i++) {
    const code = path.charCodeAt(i)
    if (code > question && code <= 0x7f) continue
    if (code === slash) {
      if (!isSegmentAt(path, i + 1)) return -1
    } else if (code === percent) {
      if (!isEscapeAt(path, i) || unreserved.has(hexAt(path, i + 1) * 16 + hexAt(path, i + 2))) return -1
    } else if (code === question || code === hash) return i
    else if (code > 0x7f) return -1
  }
  return path.length
}

/** Whether something other than an empty or a dot segment starts here; the root has no segment at all. */
function isSegmentAt(path: string, start: number): boolean {
  let i = start
  while (i < start + 2 && path.charCodeAt(i) === dot) i++
  if (i === path.length) return i === 1
  const code = path.charCodeAt(i)
  if (code === question || code === hash) return i === 1
  return code !== slash
}

/** Whether an escape starts here, in capitals as normalised paths spell them. */
export function isEscapeAt(path: string, start: number): boolean {
  return path.charCodeAt(start) === percent && hexAt(path, start + 1) >= 0 && hexAt(path, start + 2) >= 0
}

function hexAt(path: string, index: number): number {
  const code = path.charCodeAt(index)
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  return code >= 0x41 && code <= 0x46 ? code - 0x37 : -1
}

const unreserved: ReadonlySet<number> = new Set(
  Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~'),
)

function pathEnd(path: string): number {
  const end = path.search(/[?#]/)
  return end === -1 ? path.length : end
}

/**
 * Decodes once. An escape right behind a malformed `%` is left alone: decoded, it could complete that one to an escape
 * which nobody sent, and a second pass would see another path than the first.
 */
function decodeUnreserved(text: string): string {
  return text.replace(/(?<!%[0-9A-Fa-f]?)%[0-9A-Fa-f]{2}/g, (triplet) => {
    const code = Number.parseInt(triplet.slice(1), 16)
    return unreserved.has(code) ? String.fromCharCode(code) : triplet.toUpperCase()
  })
}

function encodeNonAscii(text: string): string {
  return text.replace(/[\u0080-\uffff]+/g, (run) =>
    Buffer.from(run).toString('hex').toUpperCase().replace(/../g, '%$&'),
  )
}
