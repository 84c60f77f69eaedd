/**
 * Composes long lists of a YAML document a few items at a time. The composer converts a whole document to nodes in one
 * call, which takes seconds for thousands of rules. Long lists are therefore detached from the tokens of the document,
 * composed separately, and attached to the nodes again.
 */
import { Composer, type CST, isMap, isPair, isSeq, type YAMLError, type YAMLSeq } from 'yaml'
import type { Steps } from '../../core/scheduling/steps.js'

export const composerOptions = {
  schema: 'core',
  // Tags of other schemas, such as dates, sets and binary data, are reported as unknown.
  resolveKnownTags: false,
  stringKeys: true,
  // The package compares each key with all others; `mapValue` detects duplicates with one lookup.
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: 'error',
} as const

/** The depth of a rule in `{ ruleSets: [{ rules: [...] }] }`. */
export const outerDepth = 4

/** Lists up to this length are composed with their document. */
const shortList = 64
const itemsPerStep = 8

/** A list and its detached items: all but the last. */
interface DetachedList {
  readonly list: CST.BlockSequence
  readonly items: CST.BlockSequence['items']
}

/**
 * Detaches the items of long lists on the outer levels. The last item stays, because the composer continues from its end.
 * A document with directives is left unchanged, because directives can change the meaning of the items.
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
  // An outer list must be attached before the lists inside it.
  return detached.reverse()
}

/** Composes the detached items, attaches them to the nodes of their document, and returns the syntax errors. */
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

/** Finds the list node at an offset. Returns `undefined` if syntax errors around it left no such node. */
function listAt(node: unknown, offset: number, depth: number): YAMLSeq | undefined {
  if (isSeq(node) && node.range?.[0] === offset) return node
  if (depth === 0 || !(isMap(node) || isSeq(node))) return undefined
  for (const item of node.items) {
    const found = listAt(isPair(item) ? item.value : item, offset, depth - 1)
    if (found !== undefined) return found
  }
  return undefined
}
