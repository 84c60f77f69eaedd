/** Numbers and times in the language and time zone of the viewer. */
import { language } from '../state/preferences.js'
import { t } from './translate.js'

/** The variant of the language that the browser prefers, such as `en-GB`, because times and dates differ between variants. */
const locale = (): string => navigator.languages.find((name) => name.slice(0, 2) === language.value) ?? language.value

const numbers = new Map<string, Intl.NumberFormat>()

function numberFormat(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const id = locale() + JSON.stringify(options)
  const known = numbers.get(id) ?? new Intl.NumberFormat(locale(), options)
  numbers.set(id, known)
  return known
}

export const whole = (value: number): string => numberFormat({ maximumFractionDigits: 0 }).format(value)

/** `12.3K` from ten thousand on, because counts must fit in narrow columns. */
export const short = (value: number): string =>
  value < 10_000
    ? numberFormat({ maximumFractionDigits: value < 10 && value % 1 !== 0 ? 1 : 0 }).format(value)
    : numberFormat({ notation: 'compact', maximumFractionDigits: 1 }).format(value)

export const percent = (share: number): string =>
  numberFormat({ style: 'percent', maximumFractionDigits: share > 0 && share < 0.1 ? 1 : 0 }).format(share)

const dates = new Map<string, Intl.DateTimeFormat>()

function dateFormat(options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const id = locale() + JSON.stringify(options)
  const known = dates.get(id) ?? new Intl.DateTimeFormat(locale(), options)
  dates.set(id, known)
  return known
}

export const timeOfDay = (at: number): string =>
  dateFormat({ hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }).format(at)

export const dateAndTime = (at: number | string): string =>
  dateFormat({ dateStyle: 'medium', timeStyle: 'medium' }).format(new Date(at))

/** The time, with the date unless it is today. */
export const sinceTime = (at: number): string =>
  new Date(at).toDateString() === new Date().toDateString() ? timeOfDay(at) : dateAndTime(at)

const units = [
  ['durationDay', 86_400_000],
  ['durationHour', 3_600_000],
  ['durationMinute', 60_000],
  ['durationSecond', 1_000],
] as const

/** `250 ms`, `12 s`, `1 min 30 s`: at most two units. */
export function duration(ms: number): string {
  if (ms < 1_000) return t('durationMillisecond', { count: ms < 10 && ms % 1 !== 0 ? ms.toFixed(1) : Math.ceil(ms) })
  const parts: string[] = []
  let rest = Math.ceil(ms / 1_000) * 1_000
  for (const [name, size] of units) {
    const count = Math.floor(rest / size)
    if (count === 0 || parts.length === 2) continue
    parts.push(t(name, { count }))
    rest -= count * size
  }
  return parts.join(' ')
}

/** `250 ms`, `1.5 s`: a time that is not rounded up. */
export function exactly(ms: number): string {
  const [name, value] = ms < 1_000 ? (['durationMillisecond', ms] as const) : (['durationSecond', ms / 1_000] as const)
  return t(name, { count: numberFormat({ maximumFractionDigits: 2 }).format(value) })
}

const windowUnits = [
  ['week', 604_800_000],
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
  ['millisecond', 1],
] as const

/** `minute`, `10 seconds`: a window in the largest unit that divides it. */
export function windowName(ms: number): string {
  const [name, size] = windowUnits.find(([, size]) => ms % size === 0) ?? (['millisecond', 1] as const)
  return ms === size ? t(name) : t('windowCount', { count: whole(ms / size), unit: t(name) })
}

/** `now`, `12 s ago`. */
export function ago(at: number, now: number): string {
  const elapsed = now - at
  return elapsed < 2_000 ? t('now') : t('ago', { time: duration(elapsed) })
}
