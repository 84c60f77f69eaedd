/** JSON of many megabytes, written in steps between which other work can run. Keeps source texts, as `jsonText` does. */
import type { Steps } from '../scheduling/steps.js'
import { jsonText, keepLayout, type Layout, sourceTextOf } from './source-text.js'

const longListLength = 64
const outerLevels = 6

/** Like `jsonText`, with a step after each member of a long list. */
export function* jsonTextSteps(value: unknown): Steps<string> {
  const parts: string[] = []
  yield* writeJson(value, (text) => parts.push(text))
  return parts.join('')
}

const chunkLength = 128 * 1_024

/** Like `jsonTextSteps`, in UTF-8 chunks, because encoding many megabytes at once blocks the event loop. `layout` is applied to the members of lists. */
export function* jsonChunksSteps(value: unknown, layout: Layout = keepLayout): Steps<Buffer[]> {
  const chunks: Buffer[] = []
  let text = ''
  yield* writeJson(value, (part) => {
    text += layout(part)
    if (text.length < chunkLength) return
    chunks.push(Buffer.from(text))
    text = ''
  })
  chunks.push(Buffer.from(text))
  return chunks
}

/** Calls `write` with consecutive parts of the text. A part never starts or ends inside a word. */
function* writeJson(value: unknown, write: (part: string) => void, levels = outerLevels): Steps<void> {
  if (levels === 0 || typeof value !== 'object' || value === null || sourceTextOf(value) !== undefined) {
    write(jsonText(value) ?? 'null')
    return
  }
  const isList = Array.isArray(value)
  write(isList ? '[' : '{')
  let isFirst = true
  for (const [name, member] of isList ? value.entries() : Object.entries(value)) {
    if (!isList && member === undefined) continue
    const start = `${isFirst ? '' : ','}${isList ? '' : `${JSON.stringify(name)}:`}`
    isFirst = false
    if (isList && value.length > longListLength && !hasLongList(member)) write(start + (jsonText(member) ?? 'null'))
    else {
      if (start !== '') write(start)
      yield* writeJson(member, write, levels - 1)
    }
    if (isList) yield
  }
  write(isList ? ']' : '}')
}

const hasLongList = (value: unknown): boolean =>
  typeof value === 'object' &&
  value !== null &&
  Object.values(value).some((member) => Array.isArray(member) && member.length > longListLength)
