import type { BulkFormat } from '../../../redis/bulk/bulk-load.js'
import { openInputFile, withReadErrors } from '../../input-file.js'

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
  const { bytes, size } = await openInputFile(file)
  return counted(withReadErrors(bytes, file), size, onRead)
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
