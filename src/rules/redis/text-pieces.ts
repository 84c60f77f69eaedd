/**
 * Rules are found by any part of their text, whatever its case. What is indexed are pieces of three characters, from each
 * character on; who has every piece of what is looked for probably has all of it, and is read to be sure.
 */
import type { RuleDocument } from '../../core/rule-store.js'
import { searchedFields } from '../store/rule-document.js'

const pieceLength = 3
/** Nobody needs an index of a novel: such a rule is read whenever somebody looks for something. */
const maxPieces = 2_000
const maxPiecesAsked = 8

/** In lower case; the last ones of a text are shorter. */
export function piecesOf(document: RuleDocument): readonly string[] {
  const pieces = new Set<string>()
  for (const name of searchedFields) {
    const text = charactersOf(String(document[name] ?? ''))
    for (let at = 0; at < text.length && pieces.size <= maxPieces; at++) pieces.add(pieceAt(text, at))
  }
  return pieces.size <= maxPieces ? [...pieces] : ['']
}

/** What a text that contains `q` must have. */
export function piecesAsked(q: string): readonly string[] {
  const text = charactersOf(q)
  const count = Math.max(1, text.length - pieceLength + 1)
  const step = Math.ceil(count / maxPiecesAsked)
  return Array.from({ length: Math.ceil(count / step) }, (_, place) => pieceAt(text, place * step))
}

const pieceAt = (text: readonly string[], at: number): string => text.slice(at, at + pieceLength).join('')

/** As they arrive in Redis: half of a pair of surrogates becomes the sign for what cannot be encoded. */
const charactersOf = (text: string): string[] => [...Buffer.from(text.toLowerCase()).toString()]
