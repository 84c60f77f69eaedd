import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { UsageError } from './failure.js'

/** An input file of a command. */
export interface InputFile {
  /** In bytes; undefined if it is not a regular file, such as a pipe. */
  readonly size: number | undefined
  readonly bytes: AsyncIterable<Buffer>
}

/** Throws a `UsageError` if the file does not exist or is a directory. Use `withReadErrors` on what is read. */
export async function openInputFile(file: string): Promise<InputFile> {
  const info = await stat(file).catch((error: unknown) => {
    throw unreadable(file, error)
  })
  if (info.isDirectory()) throw new UsageError(`${file} is a directory. Pass a file, or - for standard input.`)
  return { size: info.isFile() ? info.size : undefined, bytes: createReadStream(file, { highWaterMark: 256 * 1024 }) }
}

/** Passes on what is read from a file. Errors become a `UsageError` that names the file. */
export async function* withReadErrors<T>(chunks: AsyncIterable<T>, file: string): AsyncGenerator<T> {
  try {
    yield* chunks
  } catch (error) {
    throw unreadable(file, error)
  }
}

function unreadable(file: string, error: unknown): UsageError {
  const { code, message } = error as NodeJS.ErrnoException
  return new UsageError(code === 'ENOENT' ? `File not found: ${file}.` : `Cannot read ${file}: ${message}.`)
}
