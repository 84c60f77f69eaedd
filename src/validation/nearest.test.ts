import { describe, expect, it } from 'vitest'
import { nameHint } from './nearest.js'

describe('hints about unknown names', () => {
  const ofRules = ['id', 'path', 'method', 'limitScope', 'capacity', 'window', 'windowMs', 'permits', 'mode']
  const names = [...ofRules, 'key', 'skip', 'countWhen', 'onRejected', 'headers', 'trustedProxies']

  it.each([
    ['max', 'capacity'],
    ['limit', 'capacity'],
    ['points', 'capacity'],
    ['timeWindow', 'window'],
    ['ttl', 'window'],
    ['duration', 'window'],
    ['window_ms', 'windowMs'],
    ['keyGenerator', 'key'],
    ['skipSuccessfulRequests', 'countWhen'],
    ['allowList', 'skip'],
    ['standardHeaders', 'headers'],
    ['capcity', 'capacity'],
  ])('suggest for %s the option %s', (name, ours) => {
    expect(nameHint(name, names)).toBe(`did you mean ${ours}?`)
  })

  it('suggest bands where a limit is a list of bands', () => {
    for (const name of ['max', 'limit', 'points', 'capacity', 'window', 'timeWindow'])
      expect(nameHint(name, ['id', 'bands', 'permits'])).toBe('did you mean bands?')
  })

  it('list the allowed names if none is close, or if the suggestion is not one of them', () => {
    expect(nameHint('max', ['id', 'rules'])).toBe('allowed: id, rules')
    expect(nameHint('colour', ['id', 'rules'])).toBe('allowed: id, rules')
    expect(nameHint('constructor', ['id', 'rules'])).toBe('allowed: id, rules')
  })
})
