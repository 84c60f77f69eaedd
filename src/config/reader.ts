import type { ValidationIssues } from '../validation/issues.js'
import type { Setting } from '../validation/setting.js'
import { environmentName } from '../validation/setting-names.js'
import { problem } from './messages.js'
import { type Member, openPart, openSection, sameAs } from './parts.js'
import { type Environment, fillInValue, scalarOf, variable } from './placeholders.js'
import { resolveRules } from './rules.js'
import { checkTls } from './server.js'
import { type Settings, settings } from './settings.js'
import { resolveStore, type Sources } from './store.js'

/** Reads all settings of a document. Continues after an issue, so that all issues are reported at once. */
export function readSettings(document: unknown, environment: Environment, issues: ValidationIssues): Settings {
  const root = openPart(document, '', Object.keys(settings), issues)
  const result: Record<string, Record<string, unknown>> = {}
  const sources: Record<string, Sources> = {}
  for (const [name, members] of Object.entries<Readonly<Record<string, Setting<unknown>>>>(settings)) {
    const part = openSection(root.get(name), name, Object.keys(members), issues)
    const read = Object.entries(members).map(([key, setting]) => {
      const place = `${name}.${key}`
      return [key, readSetting(setting, part.get(key), place, environment, issues)] as const
    })
    result[name] = Object.fromEntries(read.map(([key, { value }]) => [key, value]))
    sources[name] = Object.fromEntries(read.map(([key, { source }]) => [key, source]))
  }
  const filled = result as Settings
  const store = resolveStore(filled.store, sources.store ?? {}, issues)
  const rules = resolveRules(filled.rules, sources.rules ?? {}, store, issues)
  checkTls(filled, issues)
  return { ...filled, store, rules }
}

interface Read {
  readonly value: unknown
  readonly source: Sources[string]
}

/** The value of a setting: from the environment, the file or the default, in this order. */
function readSetting(
  setting: Setting<unknown>,
  member: Member | undefined,
  path: string,
  environment: Environment,
  issues: ValidationIssues,
): Read {
  const { kind, standard, isSecret, read } = setting
  const defaults: Read = { value: standard === undefined ? undefined : kind.parse(standard), source: undefined }
  const parseText = (text: string): unknown => kind.parse(text) ?? kind.parse(scalarOf(text))
  const names = [environmentName(path), setting.variable ?? ''].filter((name) => variable(environment, name))
  const [name, other] = names
  if (other !== undefined && name !== undefined) issues.add(other, sameAs(name))
  if (name !== undefined) {
    const text = variable(environment, name) ?? ''
    const value = read ? read(jsonOf(text), name, issues) : checked(parseText(text), name, text)
    return { value, source: 'environment' }
  }
  if (member === undefined) return defaults
  const { place } = member
  const { value, isWhole, mistakes: placeholderIssues } = fillInValue(member.value, environment)
  for (const message of placeholderIssues) issues.add(place, message)
  if (placeholderIssues.length > 0 || (isWhole && value === '')) return defaults
  if (read) return { value: read(isWhole ? jsonOf(String(value)) : value, place, issues), source: 'file' }
  const parsed = isWhole && typeof value === 'string' ? parseText(value) : kind.parse(value)
  return { value: checked(parsed, place, value), source: 'file' }

  function checked(result: unknown, at: string, received: unknown): unknown {
    if (result === undefined) issues.add(at, problem(received, kind.allowed, isSecret))
    return result
  }
}

/** Structured values are JSON in environment variables and placeholders. Text that is not JSON is returned unchanged. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
