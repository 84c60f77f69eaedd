import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { FluxGateError } from '../../core/errors.js'
import { finish, inSlices, type Steps } from '../../core/scheduling/steps.js'
import { formatOf, maxDocumentLength } from './document.js'

export interface RulesFile {
  readonly text: string
  /** The same for the same content, whatever its name, time or inode. */
  readonly digest: string
}

/** Reads a rules file whole; `shown` is how its path appears in messages. */
export async function readRulesFile(path: string, shown: string): Promise<RulesFile> {
  try {
    const file = await open(path, 'r')
    try {
      const info = await file.stat()
      if (!info.isFile()) throw unreadable(`${shown} is not a file; give the path of a YAML or JSON file.`)
      // UTF-8 needs up to three bytes for a character; the exact bound is the parser's.
      const most = 3 * maxDocumentLength[formatOf(path)]
      if (info.size > most)
        throw unreadable(
          `${shown} is too large: ${info.size} bytes; allowed: ${most}. Split it, or keep rules in Redis.`,
        )
      const bytes = await file.readFile()
      return { text: decoded(bytes, shown), digest: await inSlices(digestSteps(bytes)) }
    } finally {
      await file.close()
    }
  } catch (error) {
    throw error instanceof FluxGateError ? error : unreadable(sentence(error, path, shown), error)
  }
}

export const digestOf = (bytes: Uint8Array): string => finish(digestSteps(bytes))

export function* digestSteps(bytes: Uint8Array): Steps<string> {
  const hash = createHash('sha256')
  for (let at = 0; at < bytes.length; at += bytesPerStep) {
    hash.update(bytes.subarray(at, at + bytesPerStep))
    yield
  }
  return hash.digest('hex')
}

const bytesPerStep = 256 * 1_024

function decoded(bytes: Uint8Array, shown: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw unreadable(`${shown} is not UTF-8 text; save it as UTF-8.`, cause)
  }
}

function sentence(error: unknown, path: string, shown: string): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const where = path === shown ? path : `${shown} (${path})`
  if (code === 'ENOENT' || code === 'ENOTDIR') return `There is no rules file ${where}; create it, or correct the path.`
  if (code === 'EACCES' || code === 'EPERM') {
    return `The rules file ${where} may not be read by this process; change its permissions.`
  }
  return `The rules file ${where} could not be read: ${error instanceof Error ? error.message : String(error)}.`
}

export function unreadable(message: string, cause?: unknown): FluxGateError {
  return new FluxGateError('FLUXGATE_RULES_UNREADABLE', message, cause === undefined ? {} : { cause })
}
