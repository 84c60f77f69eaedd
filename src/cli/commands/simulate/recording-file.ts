import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { readLines } from '../../../simulate/index.js'
import { UsageError } from '../../failure.js'

/** Streams the lines of a recording. `-` reads standard input, `.gz` files are decompressed. Progress shows on a terminal only. */
export async function recordingLines(file: string): Promise<AsyncIterable<readonly string[]>> {
  if (file === '-') return readLines(process.stdin)
  const size = await sizeOf(file)
  const bytes = withProgress(createReadStream(file, { highWaterMark: 256 * 1024 }), size, file)
  // `pipeline` passes errors of either stream on to the last one, which the caller reads.
  const unpacked = file.endsWith('.gz') ? pipeline(bytes, createGunzip(), () => {}) : bytes
  return readLines(withReadErrors(unpacked, file))
}

async function sizeOf(file: string): Promise<number> {
  try {
    const info = await stat(file)
    if (!info.isDirectory()) return info.size
  } catch (error) {
    throw unreadable(file, error)
  }
  throw new UsageError(`${file} is a directory. Pass a file to --from, or - for standard input.`)
}

async function* withReadErrors(chunks: AsyncIterable<Uint8Array>, file: string): AsyncGenerator<Uint8Array> {
  try {
    yield* chunks
  } catch (error) {
    throw unreadable(file, error)
  }
}

function unreadable(file: string, error: unknown): UsageError {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return new UsageError(`File not found: ${file}.`)
  return new UsageError(`Cannot read ${file}: ${message}.`)
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
