import type { Mistakes } from '../validation/issues.js'
import type { Setting } from '../validation/setting.js'
import { environmentName } from '../validation/setting-names.js'
import { problem } from './messages.js'
import { type Member, openPart, openSection, sameAs } from './parts.js'
import { type Environment, fillInValue, scalarOf, variable } from './placeholders.js'
import { resolveRules } from './rules.js'
import { checkTls } from './server.js'
import { type Settings, settings } from './settings.js'
import { resolveStore, type Sources } from './store.js'

/** A document → all settings. Reading goes on after a mistake, so that its author sees all of them at once. */
export function readSettings(document: unknown, environment: Environment, mistakes: Mistakes): Settings {
  const root = openPart(document, '', Object.keys(settings), mistakes)
  const result: Record<string, Record<string, unknown>> = {}
  const sources: Record<string, Sources> = {}
  for (const [name, members] of Object.entries<Readonly<Record<string, Setting<unknown>>>>(settings)) {
    const part = openSection(root.get(name), name, Object.keys(members), mistakes)
    const read = Object.entries(members).map(([key, setting]) => {
      const place = `${name}.${key}`
      return [key, readSetting(setting, part.get(key), place, environment, mistakes)] as const
    })
    result[name] = Object.fromEntries(read.map(([key, { value }]) => [key, value]))
    sources[name] = Object.fromEntries(read.map(([key, { source }]) => [key, source]))
  }
  const filled = result as Settings
  const store = resolveStore(filled.store, sources.store ?? {}, mistakes)
  const rules = resolveRules(filled.rules, sources.rules ?? {}, store, mistakes)
  checkTls(filled, mistakes)
  return { ...filled, store, rules }
}

interface Read {
  readonly value: unknown
  readonly source: Sources[string]
}

/** The environment's, or else the file's, or else the standard one. */
function readSetting(
  setting: Setting<unknown>,
  member: Member | undefined,
  path: string,
  environment: Environment,
  mistakes: Mistakes,
): Read {
  const { kind, standard, isSecret, read } = setting
  const usual: Read = { value: standard === undefined ? undefined : kind.parse(standard), source: undefined }
  const fromOutside = (text: string): unknown => kind.parse(text) ?? kind.parse(scalarOf(text))
  const names = [environmentName(path), setting.variable ?? ''].filter((name) => variable(environment, name))
  const [name, other] = names
  if (other !== undefined && name !== undefined) mistakes.add(other, sameAs(name))
  if (name !== undefined) {
    const text = variable(environment, name) ?? ''
    const value = read ? read(jsonOf(text), name, mistakes) : checked(fromOutside(text), name, text)
    return { value, source: 'environment' }
  }
  if (member === undefined) return usual
  const { place } = member
  const { value, isWhole, mistakes: wrong } = fillInValue(member.value, environment)
  for (const message of wrong) mistakes.add(place, message)
  if (wrong.length > 0 || (isWhole && value === '')) return usual
  if (read) return { value: read(isWhole ? jsonOf(String(value)) : value, place, mistakes), source: 'file' }
  const parsed = isWhole && typeof value === 'string' ? fromOutside(value) : kind.parse(value)
  return { value: checked(parsed, place, value), source: 'file' }

  function checked(result: unknown, at: string, found: unknown): unknown {
    if (result === undefined) mistakes.add(at, problem(found, kind.allowed, isSecret))
    return result
  }
}

/** What has more than one value is JSON where there is only text for it. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
