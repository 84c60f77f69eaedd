import { readFile, stat } from 'node:fs/promises'
import { FluxGateError, type Mistake } from '../core/errors.js'
import { formatOf, maxDocumentLength, parseDocument } from '../rules/document/document.js'
import { digestOf } from '../rules/document/rules-file.js'
import { configInvalid } from '../validation/config-invalid.js'
import { camelCase } from '../validation/setting-names.js'
import { maskPlaceholders, unmaskPlaceholders } from './placeholders.js'
import { settingNames } from './settings.js'

export interface ConfigFile {
  readonly document: unknown
  /** Of its bytes. */
  readonly digest: string
}

/** What a YAML or JSON file says; `shown` is how its path appears in messages. */
export async function readConfigFile(path: string, shown: string): Promise<ConfigFile> {
  const { text, digest } = await readText(path, shown)
  const format = formatOf(path)
  try {
    return {
      document: unmasked(parseDocument(format === 'yaml' ? maskPlaceholders(text) : text, format, shown)),
      digest,
    }
  } catch (error) {
    if (!(error instanceof FluxGateError)) throw error
    throw configInvalid(shown, error.errors.map(withoutValues))
  }
}

/**
 * Where the grammar is broken, anything may be quoted in a message, and a token must not be: a log is read by more
 * people than a configuration. Names of settings are shown, everything else is not.
 */
function withoutValues({ path, message }: Mistake): Mistake {
  const [, general = ''] = /^((?:(?!: |[*&!%|>]\S).)*)/s.exec(message) ?? []
  const shown = (message.startsWith('found ') ? message : general || 'not understood').replace(
    /"((?:[^"\\]|\\.)*)"/g,
    (match, name: string) => (name.length === 1 || settingNames.has(camelCase(name)) ? match : '…'),
  )
  return { path, message: unmaskPlaceholders(shown) }
}

function unmasked(value: unknown): unknown {
  if (typeof value === 'string') return unmaskPlaceholders(value)
  if (Array.isArray(value)) return value.map(unmasked)
  if (typeof value !== 'object' || value === null) return value
  // fromEntries defines properties, so that a key named __proto__ stays a key.
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [unmaskPlaceholders(name), unmasked(member)]))
}

async function readText(path: string, shown: string): Promise<{ text: string; digest: string }> {
  try {
    const info = await stat(path)
    if (!info.isFile()) throw unreadable(`${shown} is not a file; give the path of a YAML or JSON file.`)
    if (info.size > 3 * maxDocumentLength.json) throw unreadable(`${shown} is too large: ${info.size} bytes.`)
    const bytes = await readFile(path)
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes), digest: digestOf(bytes) }
  } catch (error) {
    throw error instanceof FluxGateError ? error : unreadable(sentence(error, shown), error)
  }
}

function sentence(error: unknown, shown: string): string {
  if (error instanceof TypeError) return `${shown} is not UTF-8 text; save it as UTF-8.`
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    return `There is no configuration file ${shown}; create it, or correct the path.`
  }
  return `The configuration file ${shown} could not be read (${code ?? String(error)}).`
}

const unreadable = (message: string, cause?: unknown): FluxGateError =>
  new FluxGateError('FLUXGATE_CONFIG_UNREADABLE', message, cause === undefined ? {} : { cause })
