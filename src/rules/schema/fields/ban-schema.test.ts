import { describe, expect, it } from 'vitest'
import { parseRule } from '../parse-rules.js'

const parse = (ban: unknown, fields: object = {}) => parseRule({ capacity: 1, window: '1m', ban, ...fields }).ban
const base = { after: 5, within: '1m', for: '15m' }

describe('ban', () => {
  it('has no escalation by default', () => {
    expect(parse(base)).toEqual({ after: 5, withinTicks: 6e7, forTicks: 9e8, factor: 1, maxTicks: 9e8 })
  })

  it('lasts at most a day by default with a factor', () => {
    expect(parse({ ...base, factor: 2 })).toMatchObject({ factor: 2, maxTicks: 864e8 })
  })

  it.each([
    [{ ...base, after: 0 }, 'ban.after: must be an integer from 1 to 1000; received 0'],
    [{ within: '1m', for: '1m' }, 'ban.after: must be an integer from 1 to 1000; received nothing'],
    [{ ...base, factor: 0.5 }, 'ban.factor: must be a number from 1 to 1000; received 0.5'],
    [{ ...base, max: '1m' }, 'ban.max: must not be shorter than for (900s); received 60s'],
    [{ ...base, until: 1 }, 'ban.until: unknown field "until"'],
    ['15m', 'ban: must be a ban: { after, within, for, factor, max }; received "15m"'],
  ])('rejects %j', (ban, message) => {
    expect(() => parse(ban)).toThrow(message)
  })

  it('cannot be combined with leases', () => {
    expect(() => parse(base, { consistency: 'LEASED' })).toThrow(
      'ban: must not be combined with consistency: LEASED; every rejection is counted by the store',
    )
  })
})
