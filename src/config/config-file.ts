import { readFile, stat } from 'node:fs/promises'
import { FluxGateError, type ValidationIssue } from '../core/errors.js'
import { finish } from '../core/scheduling/steps.js'
import { formatOf, maxDocumentLength, parseDocument } from '../rules/document/document.js'
import { issueLocator } from '../rules/document/locate-issues.js'
import { digestOf } from '../rules/document/rules-file.js'
import { configInvalid } from '../validation/config-invalid.js'
import { camelCase } from '../validation/setting-names.js'
import { maskPlaceholders, unmaskPlaceholders } from './placeholders.js'
import { settingNames } from './settings.js'

export interface ConfigFile {
  readonly document: unknown
  /** Digest of the file's bytes. */
  readonly digest: string
  /** Adds the positions in the file to issues. */
  locate(issues: readonly ValidationIssue[]): readonly ValidationIssue[]
}

/** Reads and parses a YAML or JSON file. `shown` is the path for messages. */
export async function readConfigFile(path: string, shown: string): Promise<ConfigFile> {
  const { text, digest } = await readText(path, shown)
  const format = formatOf(path)
  const masked = format === 'yaml' ? maskPlaceholders(text) : text
  try {
    return {
      document: unmasked(parseDocument(masked, format, shown)),
      digest,
      locate: (issues) => finish(issueLocator(masked, format)(issues)),
    }
  } catch (error) {
    if (!(error instanceof FluxGateError)) throw error
    throw configInvalid(shown, error.errors.map(withoutValues))
  }
}

/**
 * Removes quoted values from syntax errors. The parser may quote any part of the file, including secrets, and logs have more
 * readers than the file. Only names of settings are kept.
 */
function withoutValues({ message, ...place }: ValidationIssue): ValidationIssue {
  const [, general = ''] = /^((?:(?!: |[*&!%|>]\S).)*)/s.exec(message) ?? []
  const shown = (general || 'invalid syntax').replace(/"((?:[^"\\]|\\.)*)"/g, (match, name: string) =>
    name.length === 1 || settingNames.has(camelCase(name)) ? match : '…',
  )
  return { ...place, message: unmaskPlaceholders(shown) }
}

function unmasked(value: unknown): unknown {
  if (typeof value === 'string') return unmaskPlaceholders(value)
  if (Array.isArray(value)) return value.map(unmasked)
  if (typeof value !== 'object' || value === null) return value
  // `fromEntries` defines `__proto__` as an ordinary property; an assignment would set the prototype.
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [unmaskPlaceholders(name), unmasked(member)]))
}

async function readText(path: string, shown: string): Promise<{ text: string; digest: string }> {
  try {
    const info = await stat(path)
    if (!info.isFile()) throw unreadable(`${shown} is not a file. Pass the path of a YAML or JSON file.`)
    if (info.size > 3 * maxDocumentLength.json)
      throw unreadable(`${shown} is too large: ${info.size} bytes; the maximum is ${3 * maxDocumentLength.json}.`)
    const bytes = await readFile(path)
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes), digest: digestOf(bytes) }
  } catch (error) {
    throw error instanceof FluxGateError ? error : unreadable(readFailure(error, shown), error)
  }
}

function readFailure(error: unknown, shown: string): string {
  if (error instanceof TypeError) return `${shown} is not valid UTF-8. Save the file as UTF-8.`
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    return `Configuration file not found: ${shown}. Create it, or correct the path.`
  }
  return `Cannot read the configuration file ${shown} (${code ?? String(error)}).`
}

const unreadable = (message: string, cause?: unknown): FluxGateError =>
  new FluxGateError('FLUXGATE_CONFIG_UNREADABLE', message, cause === undefined ? {} : { cause })
