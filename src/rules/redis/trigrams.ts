/**
 * A trigram index for case-insensitive substring search. Every sequence of three characters is indexed. A rule that has all
 * trigrams of the search text is a candidate, and its text is then checked.
 */
import type { RuleDocument } from '../../core/contracts/rule-store.js'
import { searchedFields } from '../store/rule-document.js'

const trigramLength = 3
/** Rules with longer texts are not indexed, but read for every search. */
const maxTrigrams = 2_000
const maxSearchTrigrams = 8

/** Trigrams in lower case. The last ones of a text are shorter. */
export function ruleTrigrams(document: RuleDocument): readonly string[] {
  const trigrams = new Set<string>()
  for (const name of searchedFields) {
    const text = charactersOf(String(document[name] ?? ''))
    for (let at = 0; at < text.length && trigrams.size <= maxTrigrams; at++) trigrams.add(trigramAt(text, at))
  }
  return trigrams.size <= maxTrigrams ? [...trigrams] : ['']
}

/** The trigrams of every text that contains `q`. */
export function searchTrigrams(q: string): readonly string[] {
  const text = charactersOf(q)
  const count = Math.max(1, text.length - trigramLength + 1)
  const step = Math.ceil(count / maxSearchTrigrams)
  return Array.from({ length: Math.ceil(count / step) }, (_, place) => trigramAt(text, place * step))
}

const trigramAt = (text: readonly string[], at: number): string => text.slice(at, at + trigramLength).join('')

/** As encoded in UTF-8: an unpaired surrogate becomes the replacement character. */
const charactersOf = (text: string): string[] => [...Buffer.from(text.toLowerCase()).toString()]
