export const calendarUnits = ['DAY', 'WEEK', 'MONTH', 'YEAR'] as const
export type CalendarUnit = (typeof calendarUnits)[number]

export const weekdays = ['MONDAY', 'TUESDAY', 'WEDNESDAY', 'THURSDAY', 'FRIDAY', 'SATURDAY', 'SUNDAY'] as const

/** Periods of the calendar in a time zone. A period starts with the first instant of its first day there. */
export interface Calendar {
  readonly unit: CalendarUnit
  /** The IANA name of the time zone. */
  readonly timeZone: string
  /** YEAR: the month of the first day, 1 to 12; otherwise 1. */
  readonly month: number
  /** WEEK: the first weekday, 1 (Monday) to 7. MONTH and YEAR: the first day; the last of the month if it has fewer days. */
  readonly day: number
}

const dayTicks = 86_400_000_000
const days: Readonly<Record<CalendarUnit, number>> = { DAY: 1, WEEK: 7, MONTH: 31, YEAR: 366 }

/** The `windowTicks` of a calendar band, where the length of a single period does not matter. */
export const nominalTicks = (unit: CalendarUnit): number => days[unit] * dayTicks

/** The spelling of the anchor in rule documents; undefined for DAY, which has none. */
export function anchorOf({ unit, month, day }: Calendar): number | string | undefined {
  if (unit === 'DAY') return undefined
  if (unit === 'WEEK') return weekdays[day - 1]
  return unit === 'MONTH' ? day : `${twoDigits(month)}-${twoDigits(day)}`
}

export const isSameCalendar = (a: Calendar, b: Calendar): boolean =>
  a.unit === b.unit && a.timeZone === b.timeZone && a.month === b.month && a.day === b.day

const twoDigits = (value: number): string => String(value).padStart(2, '0')
