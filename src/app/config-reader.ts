import { isObject, wrongValue } from '../rules/fields.js'
import { type Mistakes, placeOf } from '../rules/mistakes.js'
import { nearest } from '../rules/nearest.js'
import { absentSettings } from './config-absent.js'
import { type Environment, fillIn, scalarOf, variable } from './config-placeholders.js'
import { camelCase, environmentName, type Setting, type Settings, settings } from './config-settings.js'

/** A document → all settings. Reading goes on after a mistake, so that its author sees all of them at once. */
export function readSettings(document: unknown, environment: Environment, mistakes: Mistakes): Settings {
  const root = openPart(document, '', '', Object.keys(settings), mistakes)
  const result: Record<string, Record<string, unknown>> = {}
  for (const [name, members] of Object.entries<Readonly<Record<string, Setting<unknown>>>>(settings)) {
    const spelt = root.spelling.get(name)
    const path = placeOf('', spelt ?? name)
    const part = openPart(spelt && root.object[spelt], path, name, Object.keys(members), mistakes)
    result[name] = {}
    for (const [key, setting] of Object.entries(members)) {
      const place = { ...part, key, variable: environmentName(`${name}.${key}`) }
      result[name][key] = readSetting(setting, place, environment, mistakes)
    }
  }
  return result as Settings
}

interface Part {
  readonly object: Readonly<Record<string, unknown>>
  /** Its place as the file spells it. */
  readonly path: string
  /** Names as they are known here → as the file spells them. */
  readonly spelling: ReadonlyMap<string, string>
}

/** One object of the file. What is left empty, or left out, has nothing in it. */
function openPart(value: unknown, path: string, known: string, names: readonly string[], mistakes: Mistakes): Part {
  const spelling = new Map<string, string>()
  if (!isObject(value)) {
    const allowed = `an object of ${names.join(', ')}`
    if (value !== undefined && value !== null) mistakes.add(path || 'document', wrongValue(value, allowed))
    return { object: {}, path, spelling }
  }
  for (const spelt of Object.keys(value)) {
    const name = camelCase(spelt)
    const other = spelling.get(name)
    if (!names.includes(name)) mistakes.add(placeOf(path, spelt), unknownName(name, known, names))
    else if (other === undefined) spelling.set(name, spelt)
    else mistakes.add(placeOf(path, spelt), `found beside ${other}, which means the same; allowed: only one of them`)
  }
  return { object: value, path, spelling }
}

function unknownName(name: string, section: string, names: readonly string[]): string {
  const place = section === '' ? name : `${section}.${name}`
  if (Object.hasOwn(absentSettings, place)) return `not in this version, where ${absentSettings[place]}`
  const meant = nearest(name, names)
  return `unknown key; ${meant === undefined ? `allowed: ${names.join(', ')}` : `did you mean ${meant}?`}`
}

/** The environment's, or else the file's, or else the standard one. */
function readSetting(
  setting: Setting<unknown>,
  { object, path, spelling, key, variable: name }: Part & { readonly key: string; readonly variable: string },
  environment: Environment,
  mistakes: Mistakes,
): unknown {
  const { kind, standard } = setting
  const fromOutside = (text: string): unknown => kind.parse(text) ?? kind.parse(scalarOf(text))
  const given = variable(environment, name)
  const spelt = spelling.get(key)
  if (given !== undefined) return checked(fromOutside(given), name, given)
  const usual = standard === undefined ? undefined : kind.parse(standard)
  if (spelt === undefined) return usual
  const place = placeOf(path, spelt)
  const value = object[spelt]
  if (typeof value !== 'string') return checked(kind.parse(value), place, value)
  const { text, isWhole, mistakes: wrong } = fillIn(value, environment)
  for (const message of wrong) mistakes.add(place, message)
  if (wrong.length > 0 || (isWhole && text === '')) return usual
  return checked(isWhole ? fromOutside(text) : kind.parse(text), place, text)

  function checked(result: unknown, at: string, found: unknown): unknown {
    if (result === undefined) mistakes.add(at, wrongValue(found, kind.allowed))
    return result
  }
}
