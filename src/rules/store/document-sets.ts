/** The rule sets of a document in any of its three forms: `{ ruleSets }`, a list, or a single rule set. */
import { isObject } from '../../validation/fields.js'

type Fields = Readonly<Record<string, unknown>>

/** The document must be valid. */
export function ruleSetsIn(document: unknown): readonly Fields[] {
  if (Array.isArray(document)) return document
  const { ruleSets } = document as Fields
  return Array.isArray(ruleSets) ? ruleSets : [document as Fields]
}

/** True if the document is a single rule set, which has no list to add another one to. */
export const isSingleSet = (document: unknown): boolean => isObject(document) && !Object.hasOwn(document, 'ruleSets')
