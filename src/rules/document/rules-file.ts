import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { open, readFile } from 'node:fs/promises'
import { FluxGateError, messageOf } from '../../core/errors.js'
import { finish, inSlices, type Steps } from '../../core/scheduling/steps.js'
import { formatOf, maxDocumentLength } from './document.js'

export interface RulesFile {
  readonly text: string
  /** SHA-256 of the content. */
  readonly digest: string
}

/** Reads a rules file. `shown` is the path to show in messages. */
export async function readRulesFile(path: string, shown: string): Promise<RulesFile> {
  const bytes = await readBytes(path, shown)
  if (!isUtf8(bytes)) throw unreadable(`${shown} is not UTF-8 text. Save it as UTF-8.`)
  return { text: await inSlices(decodeSteps(bytes)), digest: await inSlices(digestSteps([bytes])) }
}

/** The digest of the current content of a rules file. */
export const digestOfFile = async (path: string, shown: string): Promise<string> =>
  inSlices(digestSteps([await readBytes(path, shown)]))

async function readBytes(path: string, shown: string): Promise<Buffer> {
  try {
    const file = await open(path, 'r')
    try {
      const info = await file.stat()
      if (!info.isFile()) throw unreadable(`${shown} is not a file. Pass the path of a YAML or JSON file.`)
      // A UTF-16 code unit takes up to three bytes in UTF-8. The parser checks the exact limit.
      const most = 3 * maxDocumentLength[formatOf(path)]
      if (info.size > most)
        throw unreadable(
          `${shown} is too large: ${info.size} bytes; the maximum is ${most}. Split it, or keep rules in Redis.`,
        )
      return await file.readFile()
    } finally {
      await file.close()
    }
  } catch (error) {
    throw error instanceof FluxGateError ? error : unreadable(readErrorMessage(error, path, shown), error)
  }
}

export const digestOf = (bytes: Uint8Array): string => finish(digestSteps([bytes]))

export function* digestSteps(chunks: Iterable<Uint8Array>): Steps<string> {
  const hash = createHash('sha256')
  for (const bytes of chunks)
    for (let at = 0; at < bytes.length; at += bytesPerStep) {
      hash.update(bytes.subarray(at, at + bytesPerStep))
      yield
    }
  return hash.digest('hex')
}

const bytesPerStep = 256 * 1_024

/** UTF-8 → text, with the byte order mark. */
export function* decodeSteps(bytes: Buffer): Steps<string> {
  const parts: string[] = []
  for (let at = 0; at < bytes.length; ) {
    let end = Math.min(at + bytesPerStep, bytes.length)
    while (isInsideCharacter(bytes[end])) end -= 1
    parts.push(bytes.toString('utf8', at, end))
    at = end
    yield
  }
  return parts.join('')
}

const isInsideCharacter = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** Text → UTF-8, in chunks. */
export function* encodeSteps(text: string): Steps<Buffer[]> {
  const parts: Buffer[] = []
  for (let at = 0; at < text.length; ) {
    let end = at + bytesPerStep
    if (isLowSurrogate(text.charCodeAt(end))) end -= 1
    parts.push(Buffer.from(text.slice(at, end)))
    at = end
    yield
  }
  return parts
}

const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff

/** Reads a file that belongs to a rules file. Empty if it does not exist. */
export async function readIfPresent(path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return Buffer.alloc(0)
    throw unreadable(`${path} could not be read: ${messageOf(error)}. Check its permissions.`, error)
  }
}

export const codeOf = (error: unknown): unknown => (error instanceof Error && 'code' in error ? error.code : undefined)

function readErrorMessage(error: unknown, path: string, shown: string): string {
  const code = codeOf(error)
  const where = path === shown ? path : `${shown} (${path})`
  if (code === 'ENOENT' || code === 'ENOTDIR') return `There is no rules file ${where}; create it, or correct the path.`
  if (code === 'EACCES' || code === 'EPERM') {
    return `This process has no permission to read the rules file ${where}; change its permissions.`
  }
  return `The rules file ${where} could not be read: ${messageOf(error)}.`
}

export function unreadable(message: string, cause?: unknown): FluxGateError {
  return new FluxGateError('FLUXGATE_RULES_UNREADABLE', message, cause === undefined ? {} : { cause })
}
