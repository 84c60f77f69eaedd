import {
  anchorOf,
  type Calendar,
  type CalendarUnit,
  calendarUnits,
  isSameCalendar,
  weekdays,
} from '../../../core/calendar/calendar.js'
import { isTimeZone } from '../../../core/calendar/zoned-days.js'
import type { Band } from '../../../core/rule.js'
import type { FieldValues } from '../../../validation/fields.js'
import { described, type Kind, wrongValue } from '../../../validation/kind.js'
import { oneOf } from '../../../validation/kinds.js'

const timeZoneKind: Kind<string> = {
  allowed: 'an IANA time zone such as UTC, Asia/Seoul or America/New_York',
  schema: { type: 'string', maxLength: 64 },
  parse: (value) => (typeof value === 'string' && value.length <= 64 && isTimeZone(value) ? value : undefined),
}

/** Ignores case, as the names of algorithms and weekdays do. */
const unitKind: Kind<CalendarUnit> = {
  ...oneOf(calendarUnits),
  parse: (value) => calendarUnits.find((unit) => typeof value === 'string' && unit === value.toUpperCase()),
}

/** The anchor is parsed by `readCalendar`, because its meaning depends on the calendar. */
const anchorKind: Kind<number | string> = {
  allowed: 'a day of the month, a weekday or MM-DD',
  schema: {
    anyOf: [
      { type: 'integer', minimum: 1, maximum: 31 },
      { type: 'string', maxLength: 16 },
    ],
  },
  parse: (value) => (typeof value === 'number' || typeof value === 'string' ? value : undefined),
}

/** The fields that replace the window of a band. */
export const calendarKinds = {
  calendar: described(
    unitKind,
    'FIXED_WINDOW only, in place of a window: one quota per day, week, month or year of the calendar.',
  ),
  timeZone: described(timeZoneKind, 'With `calendar`: IANA time zone. Default: UTC.'),
  anchor: described(
    anchorKind,
    'With `calendar`: first day of a period. MONTH: 1 to 31. WEEK: a weekday. YEAR: `MM-DD`. A missing day is the last of the month. Default: 1, MONDAY, `01-01`.',
  ),
}

const anchors: Readonly<Record<Exclude<CalendarUnit, 'DAY'>, string>> = {
  WEEK: `a weekday (${weekdays.join(', ')})`,
  MONTH: 'a day of the month from 1 to 31',
  YEAR: 'a day of the year such as "04-01" (MM-DD)',
}

/** Reads the calendar of a band. Returns undefined, after reporting, if it is invalid. */
export function readCalendar(values: FieldValues, windowNames: readonly string[]): Calendar | undefined {
  const fields = values.as(calendarKinds)
  for (const name of windowNames)
    if (fields.has(name)) fields.report(name, 'must not be combined with calendar, which replaces the window')
  const unit = fields.read('calendar')
  const timeZone = fields.has('timeZone') ? fields.read('timeZone') : 'UTC'
  const anchor = unit === undefined ? undefined : readAnchor(fields, unit)
  return unit === undefined || timeZone === undefined || anchor === undefined
    ? undefined
    : { unit, timeZone, ...anchor }
}

/** Reports fields that have no effect without a calendar. */
export function checkNoCalendar(fields: FieldValues): void {
  for (const name of ['timeZone', 'anchor'])
    if (fields.has(name)) fields.report(name, 'must be combined with calendar: DAY, WEEK, MONTH or YEAR')
}

function readAnchor(fields: FieldValues, unit: CalendarUnit): Pick<Calendar, 'month' | 'day'> | undefined {
  if (!fields.has('anchor')) return { month: 1, day: 1 }
  if (unit === 'DAY') {
    fields.report('anchor', 'must be omitted with calendar: DAY, which starts at midnight')
    return undefined
  }
  const value = fields.value('anchor')
  const anchor = parseAnchor(unit, value)
  if (anchor === undefined) fields.report('anchor', `${wrongValue(value, anchors[unit])} with calendar: ${unit}`)
  return anchor
}

function parseAnchor(unit: CalendarUnit, value: unknown): Pick<Calendar, 'month' | 'day'> | undefined {
  if (unit === 'MONTH')
    return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 31
      ? { month: 1, day: value as number }
      : undefined
  if (typeof value !== 'string') return undefined
  if (unit === 'WEEK') {
    const index = (weekdays as readonly string[]).indexOf(value.toUpperCase())
    return index < 0 ? undefined : { month: 1, day: index + 1 }
  }
  const [, month = 0, day = 0] = (/^(\d\d)-(\d\d)$/.exec(value) ?? []).map(Number)
  const isDay = month >= 1 && month <= 12 && day >= 1 && day <= (longestMonths[month - 1] as number)
  return isDay ? { month, day } : undefined
}

const longestMonths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** The fields of a calendar band, as a document. */
export function calendarDocument(calendar: Calendar): Readonly<Record<string, unknown>> {
  const anchor = anchorOf(calendar)
  return { calendar: calendar.unit, timeZone: calendar.timeZone, ...(anchor !== undefined && { anchor }) }
}

/**
 * Replaces the calendars of override bands with those of the rule. The store finds the periods of a rule in its own call, so an
 * override has no calendar of its own.
 */
export function withRuleCalendars(bands: readonly Band[], rule: readonly Band[], fields: FieldValues): readonly Band[] {
  return bands.map((band, i) => {
    const { calendar } = band
    if (calendar === undefined) return band
    const index = rule.findIndex((other) => other.calendar !== undefined && isSameCalendar(other.calendar, calendar))
    if (index >= 0) return { ...band, calendar: rule[index]?.calendar as Calendar, calendarOf: index }
    const known = rule.flatMap((other) => (other.calendar ? [JSON.stringify(calendarDocument(other.calendar))] : []))
    const allowed =
      known.length === 0
        ? 'be left out, because the rule has no calendar'
        : `be that of the rule: ${known.join(' or ')}`
    fields.issues.add(
      `${fields.at('bands')}[${i}].calendar`,
      `must ${allowed}; received ${JSON.stringify(calendarDocument(calendar))}`,
    )
    return band
  })
}
