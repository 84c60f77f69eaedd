import { describe, expect, it } from 'vitest'
import type { Calendar, CalendarUnit } from './calendar.js'
import { Periods, windowMsAt } from './periods.js'
import { isTimeZone } from './zoned-days.js'

const calendar = (unit: CalendarUnit, timeZone: string, day = 1, month = 1): Calendar => ({
  unit,
  timeZone,
  month,
  day,
})

const hourMs = 3_600_000
const localDate = (timeZone: string) => {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' })
  return (ms: number): string => format.format(ms)
}

/** The name of the period of a local date, from the definition, with strings: the date of the last anchor day before it. */
function periodName({ unit, month, day }: Calendar, date: string): string {
  const [year = 0, monthOfDate = 0, dayOfDate = 0] = date.split('-').map(Number)
  const lastOf = (y: number, m: number): number =>
    [31, isLeap(y) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][m - 1] ?? 0
  if (unit === 'DAY') return date
  if (unit === 'WEEK') {
    const weekday = (new Date(`${date}T00:00Z`).getUTCDay() + 6) % 7
    const back = (weekday - (day - 1) + 7) % 7
    return new Date(Date.parse(`${date}T00:00Z`) - back * 24 * hourMs).toISOString().slice(0, 10)
  }
  if (unit === 'MONTH') {
    const isStarted = dayOfDate >= Math.min(day, lastOf(year, monthOfDate))
    return `${year * 12 + monthOfDate - (isStarted ? 0 : 1)}`
  }
  const first = month * 100 + Math.min(day, lastOf(year, month))
  return `${monthOfDate * 100 + dayOfDate >= first ? year : year - 1}`
}
const isLeap = (year: number): boolean => year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)

/** Walks hour by hour and collects the hours at which the local date enters another period. */
function boundariesByWalking(
  calendars: readonly Calendar[],
  timeZone: string,
  fromMs: number,
  toMs: number,
): number[][] {
  const dateAt = localDate(timeZone)
  const found = calendars.map((): number[] => [])
  const names = calendars.map((one) => periodName(one, dateAt(fromMs - hourMs)))
  let before = ''
  for (let ms = fromMs; ms < toMs; ms += hourMs) {
    const date = dateAt(ms)
    if (date === before) continue
    before = date
    for (const [i, one] of calendars.entries()) {
      const name = periodName(one, date)
      if (name !== names[i]) found[i]?.push(ms)
      names[i] = name
    }
  }
  return found
}

function boundariesOf(periods: Periods, fromMs: number, toMs: number): number[] {
  const found: number[] = []
  let { start, end } = periods.at(fromMs * 1_000)
  while (start < toMs * 1_000) {
    if (start >= fromMs * 1_000) found.push(start / 1_000)
    ;({ start, end } = periods.at(end))
  }
  return found
}

describe.each([
  ['Asia/Seoul', '2020-01-01', '2030-01-01'],
  ['America/New_York', '2020-01-01', '2030-01-01'],
  ['Pacific/Apia', '2005-01-01', '2015-01-01'],
])('ten years of periods in %s', (timeZone, from, to) => {
  const calendars = [
    calendar('DAY', timeZone),
    ...[1, 7].map((day) => calendar('WEEK', timeZone, day)),
    ...[1, 15, 31].map((day) => calendar('MONTH', timeZone, day)),
    ...[
      [2, 29],
      [12, 31],
    ].map(([month, day]) => calendar('YEAR', timeZone, day, month)),
  ]

  it('start exactly where the local date enters them, hour by hour', () => {
    const [fromMs, toMs] = [Date.parse(from), Date.parse(to)]
    const expected = boundariesByWalking(calendars, timeZone, fromMs, toMs)
    for (const [i, one] of calendars.entries())
      expect(boundariesOf(new Periods(one), fromMs, toMs), JSON.stringify(one)).toEqual(expected[i])
    expect(expected[0]?.length).toBeGreaterThan(3_640)
  })
})

const startsAt = (unit: CalendarUnit, timeZone: string, at: string, day = 1, month = 1): [string, string] => {
  const { start, end } = new Periods(calendar(unit, timeZone, day, month)).at(Date.parse(at) * 1_000)
  return [new Date(start / 1_000).toISOString(), new Date(end / 1_000).toISOString()]
}

describe('a period', () => {
  it('is a month of 30 days and 23 hours around the start of daylight saving time', () => {
    expect(startsAt('MONTH', 'America/New_York', '2026-03-20T00:00Z')).toEqual([
      '2026-03-01T05:00:00.000Z',
      '2026-04-01T04:00:00.000Z',
    ])
  })

  it('is a day of 23 or 25 hours when clocks change', () => {
    expect(startsAt('DAY', 'America/New_York', '2026-03-08T12:00Z')).toEqual([
      '2026-03-08T05:00:00.000Z',
      '2026-03-09T04:00:00.000Z',
    ])
    expect(startsAt('DAY', 'America/New_York', '2026-11-01T12:00Z')).toEqual([
      '2026-11-01T04:00:00.000Z',
      '2026-11-02T05:00:00.000Z',
    ])
  })

  it('starts on the last day of a month without the anchor day', () => {
    expect(startsAt('MONTH', 'UTC', '2028-03-01T00:00Z', 31)).toEqual([
      '2028-02-29T00:00:00.000Z',
      '2028-03-31T00:00:00.000Z',
    ])
    expect(startsAt('YEAR', 'UTC', '2027-02-28T00:00Z', 29, 2)).toEqual([
      '2027-02-28T00:00:00.000Z',
      '2028-02-29T00:00:00.000Z',
    ])
  })

  it('does not exist for the day that Samoa skipped in December 2011', () => {
    const [start, end] = startsAt('DAY', 'Pacific/Apia', '2011-12-30T09:59:59.999Z')
    expect([start, end]).toEqual(['2011-12-29T10:00:00.000Z', '2011-12-30T10:00:00.000Z'])
    expect(startsAt('DAY', 'Pacific/Apia', end)).toEqual(['2011-12-30T10:00:00.000Z', '2011-12-31T10:00:00.000Z'])
    expect(startsAt('MONTH', 'Pacific/Apia', end, 30)).toEqual(['2011-12-30T10:00:00.000Z', '2012-01-29T10:00:00.000Z'])
  })

  it('starts when clocks go forward over midnight, and with the first midnight when they go back', () => {
    expect(startsAt('DAY', 'Africa/Cairo', '2026-04-24T12:00Z')).toEqual([
      '2026-04-23T22:00:00.000Z',
      '2026-04-24T21:00:00.000Z',
    ])
    expect(startsAt('DAY', 'America/Havana', '2026-11-01T12:00Z')).toEqual([
      '2026-11-01T04:00:00.000Z',
      '2026-11-02T05:00:00.000Z',
    ])
  })

  it('starts at a fraction of an hour in time zones with such offsets', () => {
    expect(startsAt('DAY', 'Asia/Kathmandu', '2026-06-01T00:00Z')[0]).toBe('2026-05-31T18:15:00.000Z')
    expect(startsAt('DAY', 'Australia/Lord_Howe', '2026-04-05T00:00Z')).toEqual([
      '2026-04-04T13:00:00.000Z',
      '2026-04-05T13:30:00.000Z',
    ])
  })
})

describe('startsAround', () => {
  it('has the previous period and three starts after the last tick', () => {
    const days = new Periods(calendar('DAY', 'UTC'))
    const day = 86_400_000_000
    expect(days.startsAround(10 * day + 5, 10 * day + 5)).toEqual([9, 10, 11, 12, 13].map((n) => n * day))
    expect(days.startsAround(10 * day, 13 * day - 1)).toEqual([9, 10, 11, 12, 13, 14, 15].map((n) => n * day))
    expect(days.startsAround(5, 5)).toEqual([0, 1, 2, 3].map((n) => n * day))
  })
})

it('is the window of a calendar band', () => {
  const band = { label: 'quota', capacity: 1, refillTokens: 1, refill: 'STEADY', windowTicks: 60_000_000 } as const
  const february = Date.UTC(2027, 1, 3) * 1_000
  const month = { ...band, algorithm: 'FIXED_WINDOW', calendar: calendar('MONTH', 'UTC') } as const
  expect(windowMsAt(month, february)).toBe(28 * 24 * hourMs)
  expect(windowMsAt({ ...band, algorithm: 'FIXED_WINDOW' }, february)).toBe(60_000)
  expect(windowMsAt({ ...band, algorithm: 'CONCURRENCY' }, february)).toBe(0)
})

it('accepts IANA names only as time zones', () => {
  expect(['UTC', 'Asia/Seoul', 'America/Argentina/Buenos_Aires'].filter(isTimeZone)).toHaveLength(3)
  expect(['Mars/Olympus', '+09:00', '', 'Asia/Seoul ', 'UTC+9'].filter(isTimeZone)).toEqual([])
})
