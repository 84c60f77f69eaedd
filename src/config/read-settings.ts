import type { ValidationIssues } from '../validation/issues.js'
import { type Kind, readValue, secret } from '../validation/kind.js'
import type { Setting } from '../validation/setting.js'
import { environmentName } from '../validation/setting-names.js'
import { type Environment, scalarOf, substituteAll, variable } from './placeholders.js'
import { resolveRules } from './rules.js'
import { duplicateOf, isUri, type Member, openObject, openSection } from './sections.js'
import { type Settings, settings } from './settings.js'
import { resolveStore, type Sources } from './store.js'

/** Reads all settings of a document. Continues after an issue, so that all issues are reported at once. */
export function readSettings(document: unknown, environment: Environment, issues: ValidationIssues): Settings {
  const sections = openObject(document, '', Object.keys(settings), issues)
  const values: Record<string, Record<string, unknown>> = {}
  const sources: Record<string, Sources> = {}
  for (const [section, table] of Object.entries<Readonly<Record<string, Setting<unknown>>>>(settings)) {
    const members = openSection(sections.get(section), section, Object.keys(table), issues)
    const results = Object.entries(table).map(([name, setting]) => {
      const path = `${section}.${name}`
      return [name, readSetting(setting, members.get(name), path, environment, issues)] as const
    })
    values[section] = Object.fromEntries(results.map(([name, { value }]) => [name, value]))
    sources[section] = Object.fromEntries(results.map(([name, { source }]) => [name, source]))
  }
  const unresolved = values as Settings
  const store = resolveStore(unresolved.store, sources.store ?? {}, issues)
  const rules = resolveRules(unresolved.rules, sources.rules ?? {}, store, issues)
  checkTls(unresolved, issues)
  return { ...unresolved, store, rules }
}

interface SourcedValue {
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
): SourcedValue {
  const { kind, defaultValue } = setting
  const [name, alias] = [environmentName(path), setting.variable ?? ''].filter((name) => variable(environment, name))
  if (alias !== undefined && name !== undefined) issues.add(alias, duplicateOf(name))
  if (name !== undefined) {
    const text = variable(environment, name) ?? ''
    return { value: readSettingValue(kind, valueOfText(kind, text), name, issues), source: 'environment' }
  }
  const defaults = { value: defaultValue === undefined ? undefined : kind.parse(defaultValue), source: undefined }
  if (member === undefined) return defaults
  const { value, isWhole, issues: messages } = substituteAll(member.value, environment)
  for (const message of messages) issues.add(member.path, message)
  if (messages.length > 0 || (isWhole && value === '')) return defaults
  const received = isWhole ? valueOfText(kind, String(value)) : value
  return { value: readSettingValue(kind, received, member.path, issues), source: 'file' }
}

const readSettingValue = (kind: Kind<unknown>, value: unknown, path: string, issues: ValidationIssues): unknown =>
  readValue(isUri(value) ? secret(kind) : kind, value, path, issues)

/** Converts the text of a variable or placeholder. Structured values are JSON; text that is not JSON is returned unchanged. */
function valueOfText(kind: Kind<unknown>, text: string): unknown {
  if (kind.read === undefined) {
    const scalar = scalarOf(text)
    return kind.parse(text) === undefined && kind.parse(scalar) !== undefined ? scalar : text
  }
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Reports a certificate without a key, or a key without a certificate. */
function checkTls(settings: Settings, issues: ValidationIssues): void {
  for (const section of ['server', 'gateway'] as const) {
    const { tlsCert, tlsKey } = settings[section]
    if ((tlsCert === undefined) === (tlsKey === undefined)) continue
    const missing = tlsCert === undefined ? 'cert' : 'key'
    issues.add(`${section}.tls`, `${missing} is missing; set both cert and key (paths of PEM files), or neither`)
  }
}
