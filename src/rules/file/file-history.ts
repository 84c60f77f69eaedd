import { appendFile, readFile, stat } from 'node:fs/promises'
import { jsonTextSteps, onOneLine, parseJson } from '../../core/json/written-json.js'
import { inSlices } from '../../core/scheduling/steps.js'
import type { NumberedEntry } from '../store/rule-storage.js'
import { replaceFile } from './replace-file.js'

/** When the history is longer than this, its older half is dropped. */
const maxBytes = 4 * 2 ** 20

/** Adds changes to a file of JSON lines, the newest at the end. */
export async function appendHistory(file: string, entries: readonly NumberedEntry[]): Promise<void> {
  if (entries.length === 0) return
  for (const entry of entries) await appendFile(file, `${onOneLine(await inSlices(jsonTextSteps(entry)))}\n`)
  if ((await stat(file)).size <= maxBytes) return
  const lines = linesOf(await readFile(file, 'utf8'))
  let bytes = 0
  const kept = lines.reverse().filter((line, index) => {
    bytes += Buffer.byteLength(line) + 1
    return index === 0 || bytes <= maxBytes / 2
  })
  await replaceFile(file, `${kept.reverse().join('\n')}\n`, async () => true)
}

/** The changes of one set, newest first. */
export async function readHistory(
  file: string,
  ruleSetId: string,
  below: number,
  limit: number,
): Promise<readonly NumberedEntry[]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  const found: NumberedEntry[] = []
  for (const line of linesOf(text).reverse()) {
    const entry = entryOf(line)
    if (entry?.entry?.ruleSetId !== ruleSetId || entry.setVersion >= below) continue
    found.push(entry)
    if (found.length === limit) break
  }
  return found
}

const linesOf = (text: string): string[] => text.split('\n').filter((line) => line !== '')

/** A line that was cut short by a power failure is no entry. */
function entryOf(line: string): NumberedEntry | undefined {
  try {
    return parseJson(line) as NumberedEntry
  } catch {
    return undefined
  }
}
