import { language } from '../state/preferences.js'
import { en } from './en.js'
import { ko } from './ko.js'

export type TextName = keyof typeof en
type Values = Readonly<Record<string, string | number>>

const texts = { en, ko } as const

/** The text in the language of the viewer, with `{name}` replaced by values. Reading it in a component subscribes to changes. */
export function t(name: TextName, values: Values = {}): string {
  const text: string = texts[language.value][name]
  return text.replace(/\{(\w+)\}/g, (whole, key: string) => String(values[key] ?? whole))
}
