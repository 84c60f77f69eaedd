import { open, readFile, stat, writeFile } from 'node:fs/promises'
import { jsonChunksSteps } from '../../core/json/json-steps.js'
import { onOneLine } from '../../core/json/source-text.js'
import { inSlices } from '../../core/scheduling/steps.js'
import { parseJsonSteps } from '../document/json-text.js'
import { readIfPresent } from '../document/rules-file.js'
import type { NumberedEntry } from '../store/rule-storage.js'
import { replaceFile } from './replace-file.js'

/** Beyond this size, the older half of the history is dropped. */
const maxBytes = 4 * 2 ** 20
const lineFeed = 0x0a

/** Appends entries to a file of JSON lines, newest last. */
export async function appendHistory(file: string, entries: readonly NumberedEntry[]): Promise<void> {
  if (entries.length === 0) return
  for (const entry of entries) {
    const line = await inSlices(jsonChunksSteps(entry, onOneLine))
    await append(file, [...line, Buffer.of(lineFeed)])
  }
  if ((await stat(file)).size <= maxBytes) return
  const bytes = await readFile(file)
  let start = bytes.length
  for (const [lineStart] of linesOf(bytes)) {
    if (start < bytes.length && bytes.length - lineStart > maxBytes / 2) break
    start = lineStart
  }
  await replaceFile(file, [bytes.subarray(start)], async () => true)
}

async function append(file: string, chunks: readonly Buffer[]): Promise<void> {
  const handle = await open(file, 'a')
  try {
    await writeFile(handle, chunks)
  } finally {
    await handle.close()
  }
}

/** Reads the entries of one rule set, newest first. */
export async function readHistory(
  file: string,
  ruleSetId: string,
  below: number,
  limit: number,
): Promise<readonly NumberedEntry[]> {
  const bytes = await readIfPresent(file)
  const found: NumberedEntry[] = []
  for (const [start, end] of linesOf(bytes)) {
    const entry = await entryOf(bytes.toString('utf8', start, end))
    if (entry?.entry?.ruleSetId !== ruleSetId || entry.setVersion >= below) continue
    found.push(entry)
    if (found.length === limit) break
  }
  return found
}

/** The start and end of each line, from the last line to the first, without empty lines. */
function* linesOf(bytes: Buffer): Generator<readonly [start: number, end: number]> {
  for (let end = bytes.length; end > 0; ) {
    const start = bytes.lastIndexOf(lineFeed, end - 1) + 1
    if (start < end) yield [start, end]
    end = start - 1
  }
}

/** Returns undefined for a line that a power failure has truncated. */
async function entryOf(line: string): Promise<NumberedEntry | undefined> {
  const read = await inSlices(parseJsonSteps(line))
  return read.issue === undefined ? (read.value as NumberedEntry) : undefined
}
