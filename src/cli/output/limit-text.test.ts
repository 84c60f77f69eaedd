import { describe, expect, it } from 'vitest'
import { limitText } from './limit-text.js'

describe('limitText', () => {
  const windowMs = 60_000

  it.each([
    [{ algorithm: 'TOKEN_BUCKET', capacity: 100, windowMs } as const, '100 per 1m'],
    [{ algorithm: 'TOKEN_BUCKET', capacity: 100, windowMs, cost: 'requests' } as const, '100 per 1m'],
    [{ algorithm: 'FIXED_WINDOW', capacity: 1_000, windowMs, calendar: 'MONTH' } as const, '1000 per month'],
    [{ algorithm: 'FIXED_WINDOW', capacity: 9, windowMs, cost: 'tokens' } as const, '9 tokens per 1m'],
    [{ algorithm: 'CONCURRENCY', capacity: 5, windowMs: 0 } as const, '5 concurrent'],
  ])('describes %j', (limit, text) => {
    expect(limitText(limit)).toBe(text)
  })
})
