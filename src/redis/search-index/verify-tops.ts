/** The same values as `few`, 4000, `kept` and `longest` in terms.lua. */
const minTerms = 256
const maxTerms = 4_000
const maxListLength = 100
const maxPrefixBytes = 96
const end = '\u0000\u0001'

/** Compares bytes as latin1 strings, whose code unit order is the byte order. */
const byRank = (one: readonly [string, string], other: readonly [string, string]): number =>
  Number(one[1]) - Number(other[1]) || (one[0] < other[0] ? -1 : 1)

/**
 * Verifies the top lists. Every prefix with more than `minTerms` and at most `maxTerms` terms must have a list; beyond `maxTerms`, a list
 * is optional. Every list must contain exactly the highest-ranked terms of its prefix with their frequencies. No list may be
 * longer than `maxListLength`, or belong to a prefix with too few terms.
 */
export function topListIssues(name: string, ranks: Map<string, string>, tops = new Map<string, string>()): string[] {
  const lists = new Map<string, string[]>()
  for (const member of [...tops.keys()].sort()) {
    const cut = member.indexOf(end)
    const prefix = member.slice(0, cut)
    lists.set(prefix, [...(lists.get(prefix) ?? []), member.slice(cut + end.length)])
  }
  const ranked = [...ranks].sort(byRank)
  const sizes = new Map<string, number>()
  for (const [term] of ranked) for (const prefix of prefixesOf(term)) sizes.set(prefix, (sizes.get(prefix) ?? 0) + 1)
  const problems: string[] = []
  for (const [prefix, size] of sizes)
    if (size > minTerms && size <= maxTerms && !lists.has(prefix))
      problems.push(`${name}:tops: the prefix ${JSON.stringify(prefix)} has no list`)
  for (const [prefix, list] of lists) {
    const expectedTerms = ranked.filter(([term]) => term.startsWith(prefix)).slice(0, list.length)
    const members = expectedTerms.map(([term, rank]) => `${String(2 ** 53 + Number(rank)).padStart(16, '0')}${term}`)
    if (
      members.join('\n') !== list.join('\n') ||
      list.length > maxListLength ||
      (sizes.get(prefix) ?? 0) <= minTerms / 2
    )
      problems.push(`${name}:tops: the list of ${JSON.stringify(prefix)} does not match its most frequent terms`)
  }
  return problems
}

/** Returns the prefixes of a term that end at a character boundary, as bytes. */
function prefixesOf(term: string): string[] {
  const prefixes: string[] = []
  for (let stop = 0; stop <= Math.min(term.length, maxPrefixBytes); stop++) {
    const next = term.charCodeAt(stop) || 0
    if (next < 128 || next > 191) prefixes.push(term.slice(0, stop))
  }
  return prefixes
}
