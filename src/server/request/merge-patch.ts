import { findJsonRanges } from '../../core/json/json-ranges.js'
import { jsonText, keepSourceText, sourceTextOf } from '../../core/json/source-text.js'

/** Applies a JSON merge patch (RFC 7396). Members that the patch does not name keep their order and their exact text. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch
  if (sourceTextOf(target) !== undefined || sourceTextOf(patch) !== undefined) return mergedWriting(target, patch)
  const merged = new Map<string, unknown>(isObject(target) ? Object.entries(target) : [])
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name)
    else merged.set(name, mergePatch(merged.get(name), value))
  }
  // `fromEntries` defines `__proto__` as an ordinary property; an assignment would set the prototype.
  return Object.fromEntries(merged)
}

function mergedWriting(target: unknown, patch: object): object {
  const text = mergedText(isObject(target) ? jsonText(target) : '', jsonText(patch))
  const merged = JSON.parse(text) as object
  keepSourceText(merged, text)
  return merged
}

/** Merges JSON texts, so that numbers and strings stay exactly as written. */
function mergedText(target: string, patch: string): string {
  if (!patch.startsWith('{')) return patch
  if (!target.startsWith('{') && !patch.includes('null')) return patch
  const merged = new Map(target.startsWith('{') ? membersOf(target) : [])
  for (const [name, text] of membersOf(patch)) {
    if (text === 'null') merged.delete(name)
    else merged.set(name, mergedText(merged.get(name) ?? '', text))
  }
  return `{${[...merged].map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`
}

const membersOf = (text: string): (readonly [string, string])[] =>
  findJsonRanges(text, () => true).map(({ path, start, end }) => [String(path[0]), text.slice(start, end)])

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
