/**
 * Long lists of a YAML document, composed a few items at a time. The composer makes nodes of a whole document in one call,
 * which takes seconds for thousands of rules. Long lists are therefore taken out of the tokens of the document, and put back
 * after it was composed without them.
 */
import { Composer, type CST, isMap, isPair, isSeq, type YAMLError, type YAMLSeq } from 'yaml'
import type { Steps } from '../../core/scheduling/steps.js'

export const composerOptions = {
  schema: 'core',
  // Tags of other schemas would make dates, sets and bytes; here they are unknown, and a mistake.
  resolveKnownTags: false,
  stringKeys: true,
  // The package compares each key with all others; `mapValue` needs one look.
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: 'error',
} as const

/** `{ ruleSets: [{ rules: [...] }] }`: what is deeper belongs to one rule. */
export const outerDepth = 4

/** Shorter lists are composed with their document. */
const shortList = 64
const itemsPerStep = 8

/** A list, and all of its items but the last. */
interface DetachedList {
  readonly list: CST.BlockSequence
  readonly items: CST.BlockSequence['items']
}

/**
 * Takes the items out of the long lists of the outer levels. The last one stays, because the composer goes on from its end.
 * Nothing is taken out where directives could change what the items mean.
 */
export function detachLists(tokens: readonly CST.Token[]): readonly DetachedList[] {
  const documents = tokens.filter((token) => token.type === 'document')
  if (documents.length !== 1 || tokens.some(({ type }) => type === 'directive')) return []
  const detached: DetachedList[] = []
  const walk = (token: CST.Token | null | undefined, depth: number): void => {
    if (depth === 0 || (token?.type !== 'block-map' && token?.type !== 'block-seq')) return
    for (const { value } of token.items) walk(value, depth - 1)
    if (token.type !== 'block-seq' || token.items.length <= shortList) return
    detached.push({ list: token, items: token.items.slice(0, -1) })
    token.items = token.items.slice(-1)
  }
  walk(documents[0]?.value, outerDepth)
  // Lists inside others are put back after those.
  return detached.reverse()
}

/** Composes the items into the nodes that were made of their document; returns what is wrong with them. */
export function* composeLists(contents: unknown, lists: readonly DetachedList[]): Steps<readonly YAMLError[]> {
  const errors: YAMLError[] = []
  for (const { list, items } of lists) {
    const node = listAt(contents, list.offset, outerDepth)
    if (node === undefined) continue
    const composed: unknown[] = []
    for (let at = 0; at < items.length; at += itemsPerStep) {
      const batch: CST.BlockSequence = { ...list, items: items.slice(at, at + itemsPerStep) }
      const document: CST.Document = { type: 'document', offset: list.offset, start: [], value: batch }
      const [part] = new Composer(composerOptions).compose([document])
      errors.push(...(part?.errors ?? []), ...(part?.warnings ?? []))
      if (isSeq(part?.contents)) composed.push(...part.contents.items)
      yield
    }
    node.items = [...composed, ...node.items]
  }
  return errors
}

/** The list that begins there; `undefined` if what stands around it is so mistaken that there is no such node. */
function listAt(node: unknown, offset: number, depth: number): YAMLSeq | undefined {
  if (isSeq(node) && node.range?.[0] === offset) return node
  if (depth === 0 || !(isMap(node) || isSeq(node))) return undefined
  for (const item of node.items) {
    const found = listAt(isPair(item) ? item.value : item, offset, depth - 1)
    if (found !== undefined) return found
  }
  return undefined
}
