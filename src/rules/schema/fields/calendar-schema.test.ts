import { describe, expect, it } from 'vitest'
import { parseRule } from '../parse-rules.js'

const bandOf = (fields: object) => parseRule({ algorithm: 'FIXED_WINDOW', capacity: 5, ...fields }).bands[0]
const issuesOf = (fields: object): unknown => {
  try {
    bandOf(fields)
    return []
  } catch (error) {
    return (error as { errors: { path: string; message: string }[] }).errors.map(
      ({ path, message }) => `${path}: ${message}`,
    )
  }
}

describe('calendar bands', () => {
  it('start on the first day of the period, in UTC, by default', () => {
    expect(bandOf({ calendar: 'MONTH' })).toMatchObject({
      label: '5-per-month',
      calendar: { unit: 'MONTH', timeZone: 'UTC', month: 1, day: 1 },
    })
  })

  it.each([
    [
      { calendar: 'MONTH', anchor: 31 },
      { month: 1, day: 31 },
    ],
    [
      { calendar: 'week', anchor: 'sunday' },
      { month: 1, day: 7 },
    ],
    [
      { calendar: 'YEAR', anchor: '04-06' },
      { month: 4, day: 6 },
    ],
    [
      { calendar: 'YEAR', anchor: '02-29' },
      { month: 2, day: 29 },
    ],
    [{ calendar: 'DAY', timeZone: 'Pacific/Apia' }, { timeZone: 'Pacific/Apia' }],
  ])('accept %j', (fields, expected) => {
    expect(bandOf(fields)?.calendar).toMatchObject(expected)
  })

  it.each([
    [
      { calendar: 'MONTH', anchor: 32 },
      'anchor: must be a day of the month from 1 to 31; received 32 with calendar: MONTH',
    ],
    [
      { calendar: 'MONTH', anchor: '15' },
      'anchor: must be a day of the month from 1 to 31; received "15" with calendar: MONTH',
    ],
    [
      { calendar: 'WEEK', anchor: 1 },
      'anchor: must be a weekday (MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY, SATURDAY, SUNDAY); received 1 with calendar: WEEK',
    ],
    [
      { calendar: 'YEAR', anchor: '02-30' },
      'anchor: must be a day of the year such as "04-01" (MM-DD); received "02-30" with calendar: YEAR',
    ],
    [{ calendar: 'DAY', anchor: 1 }, 'anchor: must be omitted with calendar: DAY, which starts at midnight'],
    [
      { calendar: 'MONTH', timeZone: 'Mars/Olympus' },
      'timeZone: must be an IANA time zone such as UTC, Asia/Seoul or America/New_York; received "Mars/Olympus"',
    ],
    [{ calendar: 'MONTH', window: '1m' }, 'window: must not be combined with calendar, which replaces the window'],
    [{ window: '1m', timeZone: 'UTC' }, 'timeZone: must be combined with calendar: DAY, WEEK, MONTH or YEAR'],
    [{ calendar: 'months' }, 'calendar: must be one of DAY, WEEK, MONTH, YEAR; received "months"'],
    [
      { calendar: 'MONTH', algorithm: 'TOKEN_BUCKET' },
      'calendar: must be combined with algorithm: FIXED_WINDOW; received TOKEN_BUCKET',
    ],
  ])('reject %j with a message', (fields, message) => {
    expect(issuesOf(fields)).toEqual([message])
  })
})
