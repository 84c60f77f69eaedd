import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { BulkFormat } from '../../../redis/bulk/bulk-load.js'
import { UsageError } from '../../failure.js'

const endings: readonly (readonly [RegExp, BulkFormat])[] = [
  [/\.csv(\.gz)?$/i, 'csv'],
  [/\.(jsonl|ndjson)(\.gz)?$/i, 'jsonl'],
]

/** The format implied by the file extension; `commands` for any other extension. */
export const formatOfName = (file: string): BulkFormat =>
  endings.find(([ending]) => ending.test(file))?.[1] ?? 'commands'

type OnRead = (read: number, size: number | undefined) => void

/** Streams a file, or standard input for `-`. `onRead` receives the bytes read so far and the total size, if known. */
export async function openInput(file: string, onRead: OnRead): Promise<AsyncIterable<Uint8Array>> {
  if (file === '-') return counted(process.stdin, undefined, onRead)
  const size = await sizeOf(file)
  return counted(createReadStream(file), size, onRead)
}

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    const info = await stat(file)
    if (!info.isDirectory()) return info.isFile() ? info.size : undefined
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new UsageError(code === 'ENOENT' ? `File not found: ${file}.` : `Cannot read ${file}: ${message}.`)
  }
  throw new UsageError(`${file} is a directory. Pass a file, or - for standard input.`)
}

async function* counted(
  chunks: AsyncIterable<Uint8Array>,
  size: number | undefined,
  onRead: OnRead,
): AsyncGenerator<Uint8Array> {
  let read = 0
  for await (const chunk of chunks) {
    read += chunk.length
    onRead(read, size)
    yield chunk
  }
}
