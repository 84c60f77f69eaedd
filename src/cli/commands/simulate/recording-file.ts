import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { readLines } from '../../../simulate/index.js'
import { openInputFile, withReadErrors } from '../../input-file.js'

/** Streams the lines of a recording. `-` reads standard input, `.gz` files are decompressed. Progress shows on a terminal only. */
export async function recordingLines(file: string): Promise<AsyncIterable<readonly string[]>> {
  if (file === '-') return readLines(process.stdin)
  const { bytes, size = 0 } = await openInputFile(file)
  const read = withProgress(bytes, size, file)
  // `pipeline` passes errors of either stream on to the last one, which the caller reads.
  const unpacked = file.endsWith('.gz') ? pipeline(read, createGunzip(), () => {}) : read
  return readLines(withReadErrors<Uint8Array>(unpacked, file))
}

const refreshMs = 200

async function* withProgress(chunks: AsyncIterable<Buffer>, size: number, file: string): AsyncGenerator<Buffer> {
  const isShown = process.stderr.isTTY && size > 0
  let read = 0
  let shownAt = Date.now()
  try {
    for await (const chunk of chunks) {
      yield chunk
      read += chunk.length
      if (!isShown || Date.now() - shownAt < refreshMs) continue
      shownAt = Date.now()
      process.stderr.write(`\r\u001b[Kreading ${file} ${Math.floor((100 * read) / size)}%`)
    }
  } finally {
    if (isShown) process.stderr.write('\r\u001b[K')
  }
}
