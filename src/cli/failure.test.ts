import { describe, expect, it } from 'vitest'
import { FluxGateError } from '../core/errors.js'
import { describeFailure, UsageError } from './failure.js'

describe('describeFailure', () => {
  it('lists every mistake on its own line with its place, and none twice', () => {
    const errors = [
      { path: 'server.port', message: 'found "x"' },
      { path: 'store', message: 'found 3' },
    ]
    const bare = new FluxGateError('FLUXGATE_CONFIG_INVALID', 'fluxgate.yaml has 2 mistakes', { errors })
    expect(describeFailure(bare, {})).toBe('fluxgate.yaml has 2 mistakes\n  server.port: found "x"\n  store: found 3')
    const told = new FluxGateError('FLUXGATE_CONFIG_INVALID', describeFailure(bare, {}), { errors })
    expect(describeFailure(told, {})).toBe(told.message)
  })

  it('shows the stack only to those who ask', () => {
    const error = new TypeError('x is not a function\nand more')
    expect(describeFailure(error, {})).toBe('Unexpected: x is not a function (DEBUG=fluxgate shows where)')
    expect(describeFailure(error, { DEBUG: 'fluxgate' })).toContain('failure.test.ts')
    expect(describeFailure(new UsageError('No.'), { DEBUG: '*' })).toBe('No.')
    expect(describeFailure('text', {})).toContain('Unexpected: text')
  })
})
