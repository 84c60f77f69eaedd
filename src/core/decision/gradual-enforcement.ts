import type { Rule } from '../rule.js'

/** Returns true if the rule is a shadow for the key. */
export type IsShadow = (key: string) => boolean

const hashRange = 2 ** 32

/**
 * Compiles `enforcePercent`. Returns undefined if the rule treats all keys alike. Every process selects the same keys, because
 * the selection depends only on the key, the rule set and the rule. A higher percentage adds keys and never removes one.
 */
export function compileIsShadow(ruleSetId: string, { id, mode, enforcePercent }: Rule): IsShadow | undefined {
  if (enforcePercent === undefined || enforcePercent >= 100 || mode === 'SHADOW') return undefined
  const salt = hashText(`${ruleSetId}/${id}`, fnvOffset)
  const enforced = (enforcePercent / 100) * hashRange
  return (key) => mix(hashText(key, salt)) >= enforced
}

const fnvOffset = 0x811c9dc5

/** FNV-1a over UTF-16 code units. */
function hashText(text: string, start: number): number {
  let hash = start
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}

/** The finalizer of MurmurHash3. FNV-1a alone distributes the high bits of similar keys, such as addresses, unevenly. */
function mix(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return (mixed ^ (mixed >>> 16)) >>> 0
}
