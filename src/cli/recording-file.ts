import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { readLines } from '../simulate/index.js'
import { UsageError } from './failure.js'

/** The lines of a recording; `-` is standard input, `.gz` is unpacked on the way. Progress shows on a terminal only. */
export async function recordingLines(file: string): Promise<AsyncIterable<string>> {
  if (file === '-') return readLines(process.stdin)
  const size = await sizeOf(file)
  const bytes = createReadStream(file, { highWaterMark: 256 * 1024 })
  const counted = withProgress(bytes, size, file)
  if (!file.endsWith('.gz')) return readLines(counted)
  // Errors of either stream reach the reader through the last one.
  return readLines(pipeline(counted, createGunzip(), () => undefined) as AsyncIterable<Uint8Array>)
}

async function sizeOf(file: string): Promise<number> {
  try {
    const info = await stat(file)
    if (info.isDirectory())
      throw new UsageError(`${file} is a directory; --from takes a file, or - for standard input.`)
    return info.size
  } catch (error) {
    if (error instanceof UsageError) throw error
    const code = (error as NodeJS.ErrnoException).code
    throw new UsageError(code === 'ENOENT' ? `There is no file ${file}.` : `${file} cannot be read (${code}).`)
  }
}

const showEveryMs = 200

async function* withProgress(chunks: AsyncIterable<Buffer>, size: number, file: string): AsyncGenerator<Buffer> {
  const isShown = process.stderr.isTTY && size > 0
  let read = 0
  let shownAt = Date.now()
  try {
    for await (const chunk of chunks) {
      yield chunk
      read += chunk.length
      if (!isShown || Date.now() - shownAt < showEveryMs) continue
      shownAt = Date.now()
      process.stderr.write(`\r\u001b[Kreading ${file} ${Math.floor((100 * read) / size)}%`)
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new UsageError(`${file} cannot be read (${code ?? message}).`)
  } finally {
    if (isShown) process.stderr.write('\r\u001b[K')
  }
}
