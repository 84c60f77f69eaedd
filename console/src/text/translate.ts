import { language } from '../state/preferences.js'
import { en } from './en.js'
import { ko } from './ko.js'

export type TextName = keyof typeof en
type Values = Readonly<Record<string, string | number>>

const texts = { en, ko } as const

const place = /\{(\w+)(?::([^|}]*)\|([^}]*))?\}/g

/**
 * The text in the language of the viewer. `{name}` is replaced by a value, `{count:line|lines}` by the form that fits a number.
 * Reading it in a component subscribes to changes.
 */
export function t(name: TextName, values: Values = {}): string {
  const text: string = texts[language.value][name]
  return text.replace(place, (whole, name: string, one?: string, many?: string) => {
    if (many === undefined) return String(values[name] ?? whole)
    return String(values[name]) === '1' ? (one ?? '') : many
  })
}
