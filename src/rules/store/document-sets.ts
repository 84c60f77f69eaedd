/** The rule sets of a document, in whichever of its three forms: `{ ruleSets }`, a list, or one set alone. */
import { isObject } from '../../validation/fields.js'

type Fields = Readonly<Record<string, unknown>>

/** A document that was checked before. */
export function setsOf(document: unknown): readonly Fields[] {
  if (Array.isArray(document)) return document
  const { ruleSets } = document as Fields
  return Array.isArray(ruleSets) ? ruleSets : [document as Fields]
}

/** Whether a set stands alone, so that there is no place for another one. */
export const isLoneSet = (document: unknown): boolean => isObject(document) && !Object.hasOwn(document, 'ruleSets')
