/** As terms.lua has them. */
const few = 256
const many = 4_000
const kept = 100
const longest = 96
const end = '\u0000\u0001'

/** Bytes as latin1, in which the order of code units is the order of bytes. */
const isBefore = (one: readonly [string, string], other: readonly [string, string]): number =>
  Number(one[1]) - Number(other[1]) || (one[0] < other[0] ? -1 : 1)

/**
 * Every prefix that more than a few terms share must have its list, unless they are so many that it may have been too far to
 * look for. Every list must be the first so many of its prefix, with their frequencies; none may be too long, or of a prefix
 * with few terms.
 */
export function topsProblems(name: string, ranks: Map<string, string>, tops = new Map<string, string>()): string[] {
  const lists = new Map<string, string[]>()
  for (const place of [...tops.keys()].sort()) {
    const cut = place.indexOf(end)
    const prefix = place.slice(0, cut)
    lists.set(prefix, [...(lists.get(prefix) ?? []), place.slice(cut + end.length)])
  }
  const ranked = [...ranks].sort(isBefore)
  const sizes = new Map<string, number>()
  for (const [term] of ranked) for (const prefix of prefixesOf(term)) sizes.set(prefix, (sizes.get(prefix) ?? 0) + 1)
  const problems: string[] = []
  for (const [prefix, size] of sizes)
    if (size > few && size <= many && !lists.has(prefix))
      problems.push(`${name}:tops: ${JSON.stringify(prefix)} has no list`)
  for (const [prefix, list] of lists) {
    const should = ranked.filter(([term]) => term.startsWith(prefix)).slice(0, list.length)
    const places = should.map(([term, rank]) => `${String(2 ** 53 + Number(rank)).padStart(16, '0')}${term}`)
    if (places.join('\n') !== list.join('\n') || list.length > kept || (sizes.get(prefix) ?? 0) <= few / 2)
      problems.push(`${name}:tops: the list of ${JSON.stringify(prefix)} is not that of its most frequent terms`)
  }
  return problems
}

/** At the beginnings of characters, as bytes. */
function prefixesOf(term: string): string[] {
  const prefixes: string[] = []
  for (let stop = 0; stop <= Math.min(term.length, longest); stop++) {
    const next = term.charCodeAt(stop) || 0
    if (next < 128 || next > 191) prefixes.push(term.slice(0, stop))
  }
  return prefixes
}
